<?php
// SPDX-License-Identifier: Apache-2.0

namespace QueueWorker\Monitor;

/** One look after the other, through the application's own connections. */
final class Watch
{
    /**
     * After so many seconds no other question is asked: one may take 15 more, and
     * who waits for the answer gives up after 25. More than the 5 of a server that
     * hangs, so that such a one costs no other answer.
     */
    private const LONGEST = 6;

    private $app;

    private $ask;

    private $connection;

    private $config;

    private $queues;

    private $failures;

    /** What could not be asked in this look. */
    private $troubles = [];

    private $began;

    public function __construct($app, array $ask)
    {
        $this->app = $app;
        $this->ask = $ask;
        $this->connection = $ask['connection'] === '' ? (string) $app['config']->get('queue.default') : $ask['connection'];
        $this->config = (array) $app['config']->get('queue.connections.'.$this->connection);
        if (($this->config['driver'] ?? '') === '') {
            throw new \InvalidArgumentException('the queue connection is not found in the configuration');
        }
        if ($ask['retryAfter'] > 0) {
            $this->config['retry_after'] = $ask['retryAfter'];
        }
        $this->queues = Queues::of($app, $this->connection, $this->config);
        $this->failures = new Failures($app, $this->connection, (string) $ask['cursor']);
    }

    public function look(): array
    {
        $this->troubles = [];
        $this->began = microtime(true);
        $look = ['driver' => (string) $this->config['driver'], 'queues' => []];
        $look['maintenance'] = (bool) $this->try('maintenance', function () {
            return !in_array('--force', $this->ask['options'], true) && $this->app->isDownForMaintenance();
        });
        $look['horizon'] = $this->try('horizon', function () {
            return $this->ask['horizon'] ? $this->horizon() : null;
        });
        $names = $this->names($look['horizon']['queues'] ?? []);
        foreach ($names as $name) {
            $look['queues'][] = $this->queue($name);
        }
        unset($look['horizon']['queues']);
        $look['failed'] = $this->try('failed jobs', function () use ($names) {
            return $this->failures->look($names, array_map([$this->queues, 'address'], $names));
        });
        $look['troubles'] = $this->troubles;
        $look['rss'] = self::memory();

        return $look;
    }

    private function queue(string $name): array
    {
        $numbers = $this->try($name, function () use ($name) {
            return $this->queues->numbers($name);
        });
        $paused = $this->try('pause of '.$name, function () use ($name) {
            $manager = $this->app['queue'];

            return method_exists($manager, 'isPaused') && $manager->isPaused($this->connection, $name);
        });

        return ['name' => $name, 'paused' => (bool) $paused] + (array) $numbers;
    }

    /** The names that are watched. */
    private function names(array $horizon): array
    {
        if ($this->ask['queues']) {
            return $this->ask['queues'];
        }

        return $horizon ?: [(string) ($this->config['queue'] ?? '') ?: 'default'];
    }

    /** What Horizon's own keys say. */
    private function horizon(): array
    {
        $masters = $this->app->make('Laravel\\Horizon\\Contracts\\MasterSupervisorRepository')->all();
        $queues = [];
        foreach ($this->app->make('Laravel\\Horizon\\Contracts\\SupervisorRepository')->all() as $supervisor) {
            foreach (array_keys((array) $supervisor->processes) as $pool) { // "redis:default", "redis:high,low"
                [$connection, $names] = explode(':', (string) $pool, 2) + [1 => ''];
                if ($connection === $this->connection && $names !== '') {
                    $queues = array_merge($queues, explode(',', $names));
                }
            }
        }
        sort($queues);

        return [
            'masters' => count($masters),
            'paused' => count(array_filter($masters, static function ($master) {
                return ($master->status ?? '') === 'paused';
            })),
            'queues' => array_values(array_unique($queues)),
        ];
    }

    /** A question without an answer loses none that was given before. */
    private function try(string $what, callable $ask)
    {
        if (microtime(true) - $this->began > self::LONGEST) {
            $this->troubles[] = ['what' => $what, 'class' => 'other', 'hint' => 'no time left'];

            return null;
        }
        try {
            return $ask();
        } catch (\Throwable $e) {
            $this->troubles[] = ['what' => $what, 'class' => get_class($e), 'hint' => Report::hint($e)];
            $this->queues->forget();

            return null;
        }
    }

    /** Of the whole process, in bytes. */
    private static function memory(): int
    {
        $pages = explode(' ', (string) @file_get_contents('/proc/self/statm'));

        return isset($pages[1]) ? (int) $pages[1] * 4096 : memory_get_usage(true);
    }
}
