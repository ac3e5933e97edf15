<?php

namespace App\Console;

use Illuminate\Console\Command;

/**
 * Horizon's process tree in small, for where its sources are not at hand: a
 * master that keeps workers running and looks around once a second.
 */
class Horizon extends Command
{
    protected $signature = 'horizon {--processes=2} {--connection=}';

    private $workers = [];

    private $terminating = false;

    public function handle(): void
    {
        pcntl_async_signals(true);
        pcntl_signal(SIGTERM, function () {
            $this->terminating = true;
        });
        while (! $this->terminating) {
            $this->keep();
            sleep(1);
        }
        foreach ($this->workers as $worker) {
            proc_terminate($worker, SIGTERM);
        }
        while (array_filter($this->workers, [$this, 'runs'])) {
            sleep(1);
        }
    }

    private function keep(): void
    {
        $this->workers = array_filter($this->workers, [$this, 'runs']);
        while (count($this->workers) < (int) $this->option('processes')) {
            $connection = $this->option('connection') ?: config('queue.default');
            $this->workers[] = proc_open(
                'exec '.PHP_BINARY." artisan horizon:work $connection --supervisor=s --sleep=1 --timeout=".(getenv('HORIZON_TIMEOUT') ?: 30),
                [STDIN, STDOUT, STDERR],
                $pipes,
                base_path()
            );
        }
    }

    private function runs($worker): bool
    {
        return proc_get_status($worker)['running'];
    }
}
