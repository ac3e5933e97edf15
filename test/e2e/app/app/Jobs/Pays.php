<?php

namespace App\Jobs;

use App\Http;
use App\Journal;

/** Charges a customer, by the fence where there is one, and records it some time later. */
class Pays extends Job
{
    public $order = '';

    /** The fence's name for the provider; empty: the provider itself. */
    public $through = '';

    /** How long the provider takes. */
    public $seconds = 0;

    /** How long the first run waits between the answer and its own record. */
    public $hold = 0;

    protected function run(): void
    {
        $base = $this->through ? getenv('QUEUEWORKER_FENCE_URL').'/'.$this->through : getenv('PROVIDER_URL');
        $key = $this->order.'/charge';
        $body = json_encode(['order' => $this->order, 'reference' => $key, 'seconds' => $this->seconds]);
        $answer = Http::answer($base.'/charges', $body, ['Idempotency-Key: '.$key], 18);
        $said = json_decode($answer['body'], true) ?? [];
        $problem = $said['type'] ?? '';
        $charge = ['status' => $answer['status'], 'replayed' => isset($answer['headers']['idempotency-replayed']), 'id' => $said['id'] ?? '', 'problem' => $problem];
        Journal::note('answer', $this, $charge);
        if ($answer['status'] === 200) {
            $this->wait();
            Journal::note('paid', $this, $charge);
        } elseif (strpos($problem, 'urn:queueworker:fence:') === 0 && substr($problem, -13) !== ':needs-review') {
            $this->release(max(10, (int) ($answer['headers']['retry-after'] ?? 0)));
        } else {
            $this->fail(new \RuntimeException($answer['status'].' '.$answer['body']));
        }
    }

    private function wait(): void
    {
        $hold = $this->attempts() === 1 ? $this->hold : 0;
        for ($end = microtime(true) + $hold; microtime(true) < $end;) {
            usleep(20000);
        }
    }
}
