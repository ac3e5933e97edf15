<?php

namespace App\Console;

use Illuminate\Console\Command;

/**
 * Queues jobs of several kinds and lengths. A job's name ends with its number
 * and its seconds: NAME-7-12.
 */
class Load extends Command
{
    protected $signature = 'app:load {name} {--jobs=10} {--from=5} {--to=20} {--seed=1}';

    public function handle(): void
    {
        mt_srand((int) $this->option('seed'));
        for ($i = 0; $i < (int) $this->option('jobs'); $i++) {
            $job = mt_rand(0, 1) ? new \App\Jobs\Long : new \App\Jobs\Sleeps;
            $job->seconds = mt_rand((int) $this->option('from'), (int) $this->option('to'));
            $job->name = $this->argument('name')."-$i-".$job->seconds;
            dispatch($job);
        }
    }
}
