<?php

namespace App\Jobs;

/** Fails for good at its first try. */
class GivesUp extends Job
{
    public $tries = 5;

    protected function run(): void
    {
        $this->fail(new \RuntimeException("trying again would not help"));
    }
}
