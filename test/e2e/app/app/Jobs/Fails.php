<?php

namespace App\Jobs;

/** Fails every time. */
class Fails extends Job
{
    protected function run(): void
    {
        throw new \RuntimeException("this job always fails");
    }
}
