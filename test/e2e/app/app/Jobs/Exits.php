<?php

namespace App\Jobs;

/** Ends the process. */
class Exits extends Job
{
    public $code = 0;

    protected function run(): void
    {
        exit($this->code);
    }
}
