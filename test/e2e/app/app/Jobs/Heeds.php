<?php

namespace App\Jobs;

use App\Journal;
use Illuminate\Contracts\Queue\Interruptible;

/** Waits until it is told to stop. */
class Heeds extends Job implements Interruptible
{
    public $seconds = 1;

    public function interrupted(int $signal): void
    {
        Journal::note('interrupted', $this);
    }

    protected function run(): void
    {
        sleep($this->seconds);
    }
}
