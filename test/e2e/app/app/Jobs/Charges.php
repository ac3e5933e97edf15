<?php

namespace App\Jobs;

use App\Http;

/** Charges a customer at the provider, after some work. */
class Charges extends Job
{
    public $seconds = 0;

    public $order = '';

    public $url = '';

    protected function run(): void
    {
        for ($end = microtime(true) + $this->seconds; microtime(true) < $end;) {
            usleep(20000);
        }
        $url = $this->url ?: getenv("PROVIDER_URL");
        Http::post($url."/charges", json_encode(["order" => $this->order]), ["Idempotency-Key: ".$this->order]);
    }
}
