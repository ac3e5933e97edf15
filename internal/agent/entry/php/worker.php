<?php
// SPDX-License-Identifier: Apache-2.0
//
// What a queue worker tells its supervisor, and how it is asked to take no more
// jobs. Syntax of PHP 7.3, since Laravel 8 runs there. Nothing in here may
// change what the application sees: errors are caught and reported once.

namespace QueueWorker\Agent;

final class Worker
{
    private const STATE_VERSION = 1;

    /** In bytes, so that three of them fit into the state file however they are escaped. */
    private const LONGEST_NAME = 200;

    /** The size of the state file. It never changes: see write(). */
    private const STATE_BYTES = 4096;

    private $stateFile;
    private $handle;
    private $gateFile;
    private $state;

    /** The job object this worker took from its queue, null between jobs. */
    private $job;

    /** What the runs of jobs are told to, null where nobody asks. */
    private $runs;

    private $masked = false;

    private static $complained = false;

    /** Attaches to an application whose providers have not been registered yet. */
    public static function attach($app): void
    {
        $dir = (string) getenv('QUEUEWORKER_DIR');
        if ($dir === '') {
            return;
        }
        $worker = new self($dir);
        self::guard(function () use ($worker, $app) {
            $worker->listen($app['events']);
        });
        self::guard(function () use ($worker) {
            $worker->enter('boot');
        });
        self::guard(function () use ($app) {
            RetryAfter::declareOn($app);
        });
    }

    private function __construct(string $dir)
    {
        $pid = getmypid();
        $this->stateFile = $dir.'/w.'.$pid.'.state';
        $this->gateFile = $dir.'/gate';
        if ((string) getenv('QUEUEWORKER_METRICS') !== '') {
            $this->runs = new Runs($dir.'/w.'.$pid.'.runs');
        }
        $this->state = [
            'v' => self::STATE_VERSION,
            'pid' => $pid,
            'start' => self::processStart(),
            'mask' => function_exists('pcntl_sigprocmask') && function_exists('pcntl_async_signals'),
            'jobs' => 0,
            'phase' => 'boot',
        ];
    }

    private function listen($events): void
    {
        $on = function (string $name, callable $listener) use ($events) {
            $events->listen('Illuminate\\Queue\\Events\\'.$name, function ($event) use ($listener) {
                // A process that a job forked has these listeners too.
                if (getmypid() === $this->state['pid']) {
                    return $listener($event);
                }
            });
        };
        $on('Looping', function () {
            return $this->looping();
        });
        $on('JobProcessing', function ($event) {
            $this->jobStarts($event->job);
        });
        $on('JobProcessed', function ($event) {
            $this->jobEnds($event->job, 'processed');
        });
        $on('JobExceptionOccurred', function ($event) {
            $this->jobEnds($event->job, 'exception');
        });
        $on('WorkerStopping', function ($event) {
            $this->stopping($event);
        });
    }

    /** False holds the worker; any other value than null would hide the application's own listeners. */
    private function looping(): ?bool
    {
        $this->job = null;
        $this->unmask();
        // State first, gate second: whoever closed the gate before it is looked
        // at is heard, whoever closes it later reads "loop".
        self::guard(function () {
            if ($this->state['phase'] !== 'loop' && $this->state['phase'] !== 'gated') {
                $this->enter('loop');
            }
        });
        $gate = $this->gate();
        self::guard(function () use ($gate) {
            if ($gate !== null && ($this->state['gate'] ?? null) !== $gate) {
                $this->enter('gated', ['gate' => $gate]);
            } elseif (is_file($this->stateFile)) {
                touch($this->stateFile); // the heartbeat
            }
        });

        return $gate === null ? null : false;
    }

    private function jobStarts($job): void
    {
        // A job run in place inside another one is part of it.
        if ($this->job !== null || is_a($job, 'Illuminate\\Queue\\Jobs\\SyncJob')) {
            return;
        }
        $this->job = $job;
        $this->state['jobs']++;
        $written = false;
        self::guard(function () use ($job, &$written) {
            $this->enter('job', $this->describe($job));
            $written = true;
        });
        self::guard(function () use ($written) {
            // State first, gate second, as above. A stop signal may be on its
            // way to a worker that looked idle: let it wait for the job's end.
            // The mask is inherited by processes that the job starts, so it is
            // for this case only, and for a state that could not be written.
            $interruptible = $written && $this->state['interruptible'];
            if (!$interruptible && (!$written || $this->gate() !== null)) {
                $this->mask();
            }
        });
    }

    private function jobEnds($job, string $result): void
    {
        if ($job !== $this->job) {
            return;
        }
        $this->tell(function () use ($job, $result) {
            return $job->hasFailed() ? 'failed' : ($job->isReleased() ? 'released' : $result);
        });
        $this->job = null;
        $this->unmask();
        // Not "loop" yet: the job is released, and the application's own
        // listeners run, after this one. Nor "job" any more: a worker that is
        // paused or in maintenance mode does not come back to its loop.
        self::guard(function () {
            $this->enter('ended');
        });
    }

    private function stopping($event): void
    {
        self::guard(function () use ($event) {
            $facts = ['status' => (int) ($event->status ?? 0)];
            $reason = $event->reason ?? null;
            if (is_object($reason)) {
                $facts['reason'] = (string) ($reason->value ?? $reason->name ?? '');
            }
            if ($this->job !== null) { // its own time limit is ending it
                $facts['job'] = $this->state['job'] ?? null;
                $this->tell(function () {
                    return 'timeout';
                });
            }
            $this->enter('stopping', $facts);
        });
        $this->unmask();
    }

    private function tell(callable $result): void
    {
        if ($this->runs !== null) {
            self::guard(function () use ($result) {
                $this->runs->add($result(), $this->state['job'] ?? [], $this->state['clock'] ?? 0);
            });
        }
    }

    private function describe($job): array
    {
        $payload = [];
        self::guard(function () use ($job, &$payload) {
            $payload = (array) $job->payload();
        });
        $command = $payload['data']['commandName'] ?? null;

        return [
            'job' => [
                'uuid' => self::text($payload['uuid'] ?? ''),
                'class' => self::text($payload['displayName'] ?? $payload['job'] ?? ''),
                'queue' => self::text($job->getQueue()),
                'attempt' => (int) $job->attempts(),
                'timeout' => isset($payload['timeout']) ? (int) $payload['timeout'] : null,
            ],
            'interruptible' => is_string($command)
                && interface_exists('Illuminate\\Contracts\\Queue\\Interruptible')
                && is_a($command, 'Illuminate\\Contracts\\Queue\\Interruptible', true),
        ];
    }

    /** The id of the closed gate, null while it is open. */
    private function gate(): ?string
    {
        clearstatcache();
        if (!is_file($this->gateFile)) {
            return null;
        }

        return trim((string) @file_get_contents($this->gateFile));
    }

    private function enter(string $phase, array $facts = []): void
    {
        $this->state = array_merge(
            array_intersect_key($this->state, ['v' => 1, 'pid' => 1, 'start' => 1, 'mask' => 1, 'jobs' => 1]),
            ['phase' => $phase, 'since' => microtime(true), 'clock' => hrtime(true)],
            $facts
        );
        $json = json_encode($this->state, JSON_PARTIAL_OUTPUT_ON_ERROR | JSON_INVALID_UTF8_SUBSTITUTE);
        if (!$this->write($json)) {
            // No file says less than an old one, which would be a lie.
            $this->handle = null;
            @unlink($this->stateFile);
            $this->state['phase'] = 'unwritten';
            throw new \RuntimeException('cannot write '.$this->stateFile);
        }
    }

    /**
     * One write in place, with a checksum for who reads in that moment. To
     * replace the file would cost ten times as much, for each job thrice.
     */
    private function write(string $json): bool
    {
        if (!$this->handle) {
            $this->handle = @fopen($this->stateFile, 'ce') ?: null;
        }
        $text = str_pad(sprintf('%08x %s', crc32($json), $json), self::STATE_BYTES);
        clearstatcache();

        return $this->handle
            && fseek($this->handle, 0) === 0
            && @fwrite($this->handle, $text) === self::STATE_BYTES
            && is_file($this->stateFile);
    }

    private function mask(): void
    {
        if ($this->state['mask']) {
            $this->masked = pcntl_sigprocmask(SIG_BLOCK, [SIGTERM, SIGQUIT, SIGINT]);
        }
    }

    private function unmask(): void
    {
        if ($this->masked) {
            $this->masked = false;
            pcntl_sigprocmask(SIG_UNBLOCK, [SIGTERM, SIGQUIT, SIGINT]);
        }
    }

    private static function text($value): string
    {
        return is_scalar($value) ? substr((string) $value, 0, self::LONGEST_NAME) : '';
    }

    /** Field 22 of proc(5)'s stat: tells this process from a later one with its number. */
    private static function processStart(): int
    {
        $stat = (string) @file_get_contents('/proc/self/stat');
        $fields = explode(' ', (string) substr((string) strrchr($stat, ')'), 2));

        return (int) ($fields[19] ?? 0);
    }

    /** An error of ours is reported once, and the worker goes on as if we were not here. */
    public static function guard(callable $do): void
    {
        try {
            $do();
        } catch (\Throwable $e) {
            if (!self::$complained) {
                self::$complained = true;
                @fwrite(STDERR, 'queueworker: '.$e->getMessage().' ('.basename($e->getFile()).':'.$e->getLine()."); further errors are not shown\n");
            }
        }
    }
}

/**
 * The runs of this worker's jobs, in a file that never grows: see the agent's
 * package tally. Nobody is waited for.
 */
final class Runs
{
    private const SLOT = 256;

    private const TAIL = 16;

    private const SLOTS = 2048;

    private $path;

    private $handle;

    private $sequence = 0;

    public function __construct(string $path)
    {
        $this->path = $path;
    }

    public function add(string $result, array $job, int $began): void
    {
        $this->handle = $this->handle ?: @fopen($this->path, 'we');
        if (!$this->handle) {
            return;
        }
        $n = ++$this->sequence;
        $micros = $began > 0 ? intdiv(hrtime(true) - $began, 1000) : 0;
        $head = "$n $result ".($job['attempt'] ?? 0)." $micros ".($job['class'] ?? '');
        $length = self::SLOT - self::TAIL;
        $slot = str_pad(substr($head, 0, $length), $length).str_pad((string) $n, self::TAIL - 1)."\n";
        if (fseek($this->handle, (($n - 1) % self::SLOTS) * self::SLOT) === 0) {
            @fwrite($this->handle, $slot);
        }
    }
}

/** The declared reservation, set over whatever the image's configuration says, cached or not. */
final class RetryAfter
{
    public static function declareOn($app): void
    {
        $chain = json_decode((string) getenv('QUEUEWORKER_CHAIN'), true);
        $seconds = (int) ($chain['retryAfter'] ?? 0);
        if ($seconds <= 0) {
            return;
        }
        $declare = function () use ($app, $seconds, $chain) {
            Worker::guard(function () use ($app, $seconds, $chain) {
                self::set($app['config'], $seconds, strtolower((string) ($chain['driver'] ?? '')));
            });
        };
        if ($app->bound('config')) {
            $declare();
        } else {
            $app->afterBootstrapping('Illuminate\\Foundation\\Bootstrap\\LoadConfiguration', $declare);
        }
        $app->booted($declare); // a provider may have changed it
    }

    private static function set($config, int $seconds, string $driver): void
    {
        $name = self::connection() ?? $config->get('queue.default');
        $actual = $config->get("queue.connections.$name.driver");
        // Only these two take the reservation from whoever takes the job.
        if (in_array($actual, ['redis', 'database'], true) && ($driver === '' || $driver === $actual)) {
            $config->set("queue.connections.$name.retry_after", $seconds);
        }
    }

    /** The first argument after the command's name. */
    private static function connection(): ?string
    {
        foreach (array_slice($_SERVER['argv'] ?? [], 2) as $word) {
            if ($word !== '' && $word[0] !== '-') {
                return $word;
            }
        }

        return null;
    }
}
