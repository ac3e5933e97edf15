<?php

namespace App\Console;

use Illuminate\Console\Command;

/** Queues one job: app:dispatch Sleeps '{"name":"a","seconds":5}' */
class Dispatch extends Command
{
    protected $signature = 'app:dispatch {class} {facts={}} {--connection=} {--queue=} {--times=1}';

    public function handle(): void
    {
        $class = 'App\\Jobs\\'.$this->argument('class');
        $facts = json_decode($this->argument('facts'), true, 8, JSON_THROW_ON_ERROR);
        for ($i = 0; $i < (int) $this->option('times'); $i++) {
            $job = new $class;
            foreach ($facts as $name => $value) {
                $job->$name = $value;
            }
            if ((int) $this->option('times') > 1) {
                $job->name .= "-$i";
            }
            $job->onConnection($this->option('connection') ?: null)->onQueue($this->option('queue') ?: null);
            dispatch($job);
        }
    }
}
