<?php

namespace App\Jobs;

use App\Journal;
use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Foundation\Bus\Dispatchable;
use Illuminate\Queue\InteractsWithQueue;

/** A job that journals its start and its end. */
abstract class Job implements ShouldQueue
{
    use Dispatchable, InteractsWithQueue, Queueable;

    public $name = '';

    public $timeout;

    public $tries;

    public function handle(): void
    {
        Journal::note('start', $this);
        $this->run();
        Journal::note('end', $this);
    }

    abstract protected function run(): void;
}
