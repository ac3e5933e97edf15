<?php

namespace App\Jobs;

use App\Http;

/** Calls a server without a limit of its own. */
class Curls extends Job
{
    public $url = '';

    protected function run(): void
    {
        Http::post($this->url, '{}', [], 0);
    }
}
