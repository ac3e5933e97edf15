<?php

namespace App\Jobs;

/** Does nothing, quickly. */
class Short extends Job
{
    protected function run(): void
    {
    }
}
