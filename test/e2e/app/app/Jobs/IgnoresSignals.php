<?php

namespace App\Jobs;

/** Makes the worker deaf to stop signals from here on. */
class IgnoresSignals extends Job
{
    protected function run(): void
    {
        foreach ([SIGTERM, SIGQUIT, SIGINT] as $signal) {
            pcntl_signal($signal, SIG_IGN);
        }
    }
}
