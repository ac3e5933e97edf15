<?php
// SPDX-License-Identifier: Apache-2.0

namespace QueueWorker\Monitor;

/** Failed jobs by class and by exception, as the application's own store has them. */
final class Failures
{
    private const PAGE = 500;

    private const PAGES = 40; // in one look; the next one goes on

    private const MOST = 100000; // rows that are counted, at most

    private const KINDS = 1000; // that one look tells apart, by the minute: who reads it takes no record without end

    /** Rows that were written before one that was read, and are seen after it. */
    private const LATE = 200;

    /** The same in a file, whose rows have no order but their second. */
    private const LATE_SECONDS = 60;

    private $app;

    private $connection;

    private $config;

    private $cursor;

    /** Rows up to here are older than the watch, or were counted by a script before this one. */
    private $floor;

    /** Rows that were read, and may be met again. */
    private $read = [];

    private $stored;

    private $looks = 0;

    private $slow = false;

    public function __construct($app, string $connection, string $cursor)
    {
        $this->app = $app;
        $this->connection = $connection;
        $this->config = (array) $app['config']->get('queue.failed');
        $this->cursor = $this->floor = $cursor === '' ? null : (int) $cursor;
    }

    /** Null where nobody keeps failed jobs, or the store cannot be asked for little. */
    public function look(array $names, array $addresses): ?array
    {
        $driver = $this->config['driver'] ?? (isset($this->config['table']) ? 'database' : 'null');
        $queues = array_values(array_unique(array_merge($names, $addresses)));
        if ($driver === 'database' || $driver === 'database-uuids') {
            return $this->database($queues);
        }

        return $driver === 'file' ? $this->file($queues) : null;
    }

    private function database(array $queues): array
    {
        $counts = [];
        $newest = (int) $this->table()->max('id');
        if ($this->cursor === null) {
            $this->floor = $newest;
            $this->lastHour($queues, $newest, $counts);
        } elseif ($newest < $this->cursor) { // the newest were retried or forgotten: what is left is known
            $this->floor = $newest;
            $this->read = [];
        } else {
            $newest = $this->since($queues, $newest, $counts);
        }
        $this->cursor = $newest;

        return ['cursor' => (string) $this->cursor, 'stored' => $this->stored($queues, $counts !== []), 'counts' => array_values($counts)];
    }

    /** What failed within the hour before the first look, newest first. */
    private function lastHour(array $queues, int $newest, array &$counts): void
    {
        $oldest = time() - 3600;
        $id = $newest + 1;
        for ($page = 0; $page < self::PAGES; $page++) {
            $rows = $this->columns($this->table()->where('id', '<', $id)->orderByDesc('id')->limit(self::PAGE))->get();
            foreach ($rows as $row) {
                $id = (int) $row->id;
                $at = (int) strtotime((string) $row->failed_at);
                if ($at < $oldest) {
                    return;
                }
                $this->count($counts, $row, $queues, min($at, time()), true);
            }
            if (count($rows) < self::PAGE) {
                return;
            }
        }
    }

    private function since(array $queues, int $newest, array &$counts): int
    {
        $id = max($this->cursor - self::LATE, min($this->floor, $this->cursor));
        foreach (array_keys($this->read) as $old) {
            if ($old <= $id) {
                unset($this->read[$old]);
            }
        }
        for ($page = 0; $page < self::PAGES; $page++) {
            $rows = $this->columns($this->table()->where('id', '>', $id)->orderBy('id')->limit(self::PAGE))->get();
            foreach ($rows as $row) {
                $id = (int) $row->id;
                if (!isset($this->read[$id])) {
                    $this->read[$id] = true;
                    $this->count($counts, $row, $queues, time(), false);
                }
            }
            if (count($rows) < self::PAGE) {
                return $newest;
            }
        }

        return $id;
    }

    private function count(array &$counts, $row, array $queues, int $at, bool $before): void
    {
        if ($row->connection !== $this->connection || !in_array($row->queue, $queues, true)) {
            return;
        }
        $at -= $at % 60;
        $class = self::job((string) $row->payload);
        $error = self::exception((string) $row->exception);
        $key = "$class $error $at";
        if (!isset($counts[$key]) && count($counts) >= self::KINDS) {
            $class = $error = 'other';
            $key = "$class $error $at";
        }
        $counts[$key] = $counts[$key] ?? ['class' => $class, 'error' => $error, 'at' => $at, 'before' => $before, 'count' => 0];
        $counts[$key]['count']++;
    }

    private function stored(array $queues, bool $changed): ?int
    {
        if ($this->looks++ % 10 !== 0 && $this->slow && !$changed) {
            return $this->stored;
        }
        $begin = microtime(true);
        $some = $this->table()->selectRaw('1 as one')->where('connection', $this->connection)->whereIn('queue', $queues)->limit(self::MOST);
        $this->stored = (int) $this->server()->query()->fromSub($some, 'some_failed')->useWritePdo()->count();
        $this->slow = microtime(true) - $begin > 0.05;

        return $this->stored;
    }

    /** The store of one file, on this pod's own disk unless the volume is shared. */
    private function file(array $queues): array
    {
        $counts = [];
        $stored = 0;
        $first = $this->cursor === null;
        $this->floor = $this->floor ?? time() - 3600;
        $last = (int) $this->cursor;
        foreach ((array) $this->app['queue.failer']->all() as $row) {
            $at = (int) ($row->failed_at_timestamp ?? strtotime((string) $row->failed_at));
            $stored += $row->connection === $this->connection && in_array($row->queue, $queues, true) ? 1 : 0;
            $mark = $row->id.' '.$at; // a job that was tried again and failed again has the same id
            if ($at > max($this->floor, (int) $this->cursor - self::LATE_SECONDS) && !isset($this->read[$mark])) {
                $this->read[$mark] = $at;
                $this->count($counts, $row, $queues, min($at, time()), $first);
            }
            $last = max($last, min($at, time()));
        }
        $this->read = array_filter($this->read, static function ($at) use ($last) {
            return $at > $last - self::LATE_SECONDS;
        });
        $this->cursor = $last;

        return ['cursor' => (string) $last, 'stored' => $stored, 'counts' => array_values($counts)];
    }

    /** The beginnings are enough, and the payload of a job may be long. */
    private function columns($query)
    {
        $part = $this->server()->getDriverName() === 'sqlsrv' ? 'substring' : 'substr';

        return $query->select(['id', 'connection', 'queue', 'failed_at'])
            ->selectRaw("$part(payload, 1, 2000) as payload, $part(exception, 1, 300) as exception");
    }

    private function table()
    {
        return $this->server()->table((string) ($this->config['table'] ?? 'failed_jobs'))->useWritePdo();
    }

    private function server()
    {
        return Server::database($this->app, $this->config['database'] ?? null);
    }

    /** The job's class out of the beginning of its payload. */
    private static function job(string $payload): string
    {
        foreach (['displayName', 'commandName', 'job'] as $field) {
            if (preg_match('/"'.$field.'":("(?:[^"\\\\]|\\\\.)*")/', $payload, $found)) {
                $name = json_decode($found[1]);
                if (is_string($name) && self::isName($name)) {
                    return $name;
                }
            }
        }

        return 'other';
    }

    /** "Class: message in file:1", and without a message "Class in file:1"; an exception may write itself otherwise. */
    private static function exception(string $text): string
    {
        return preg_match('/\A([^\s:]+)(?:: | in )/', $text, $found) && self::isName($found[1]) ? $found[1] : 'other';
    }

    /** A job may call itself what it likes, with a customer's data in it. */
    private static function isName(string $name): bool
    {
        return strlen($name) <= 200 && preg_match('/\A[A-Za-z_]\w*(\\\\[A-Za-z_]\w*)*(@[A-Za-z_]\w*)?\z/', $name) === 1;
    }
}
