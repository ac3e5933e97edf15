<?php
// SPDX-License-Identifier: Apache-2.0

namespace QueueWorker\Facts;

/** What only the servers know, asked through the application's own connections. Nothing is written. */
final class Servers
{
    private const PATIENCE = 5; // seconds, for a server that does not answer

    public static function report($app, array $ask): void
    {
        ini_set('default_socket_timeout', (string) self::PATIENCE);
        $config = $app['config'];
        $name = $ask['connection'] === '' ? (string) $config->get('queue.default') : $ask['connection'];
        $queue = ((array) $config->get('queue.connections'))[$name] ?? [];
        $driver = $queue['driver'] ?? '';
        $failed = Configuration::failed($config);

        if ($driver === 'redis') {
            self::check('redis', function () use ($app, $queue) {
                return self::redis($app['redis']->connection($queue['connection'] ?? 'default'));
            });
            if (Configuration::of($app, $ask)['redis']['maybeShared']) {
                self::check('cache', function () use ($app, $queue, $config) {
                    $of = function (string $connection) use ($app): string {
                        return self::runId($app['redis']->connection($connection));
                    };

                    return ['same' => $of($queue['connection'] ?? 'default') === $of(Configuration::cacheConnection($config))];
                });
            }
        }
        if ($driver === 'database') {
            self::check('jobs', function () use ($app, $queue) {
                return self::table($app, $queue['connection'] ?? null, (string) ($queue['table'] ?? 'jobs'));
            });
        }
        if (in_array($failed['store'], ['database', 'database-uuids'], true)) {
            self::check('failed', function () use ($app, $config, $failed) {
                return self::table($app, $config->get('queue.failed.database'), $failed['table'] ?: 'failed_jobs');
            });
        }
        if ($driver === 'sqs') {
            self::check('sqs', function () use ($app, $name, $ask) {
                $queue = $app['queue']->connection($name);
                $answer = $queue->getSqs()->getQueueAttributes([
                    'QueueUrl' => $queue->getQueue($ask['queue'] ?: null), 'AttributeNames' => ['VisibilityTimeout'],
                ]);

                return ['visibility' => (int) $answer['Attributes']['VisibilityTimeout']];
            });
        }
        if ($ask['fence'] !== null) {
            self::check('fence', function () use ($app, $ask) {
                return self::fence($app, $ask['fence']['table'], $ask['fence']['key']);
            });
        }
    }

    private static function check(string $what, callable $ask): void
    {
        Report::record('asking', ['what' => $what]);
        try {
            Report::record('server-'.$what, $ask());
        } catch (\Throwable $e) {
            Report::record('unanswered', ['what' => $what] + Report::errorOf($e));
        }
    }

    private static function redis($connection): array
    {
        $info = self::info($connection);

        return [
            'policy' => (string) ($info['maxmemory_policy'] ?? ''),
            'maxmemory' => (int) ($info['maxmemory'] ?? 0),
            'cluster' => !empty($info['cluster_enabled']),
        ];
    }

    private static function info($connection): array
    {
        $info = [];
        $answer = (array) $connection->info();
        array_walk_recursive($answer, function ($value, $key) use (&$info) { // Predis sorts them into sections
            $info[$key] = $value;
        });

        return $info;
    }

    /** What a server calls itself, under whatever name it is reached. */
    private static function runId($connection): string
    {
        $id = (string) (self::info($connection)['run_id'] ?? '');
        if ($id === '') {
            throw new \RuntimeException('the server does not tell its run_id');
        }

        return $id;
    }

    private static function table($app, ?string $connection, string $table): array
    {
        $connection = self::connection($app, $connection);

        return [
            'exists' => $connection->getSchemaBuilder()->hasTable($table),
            'name' => $connection->getTablePrefix().$table, 'connection' => (string) $connection->getName(),
        ];
    }

    private static function connection($app, ?string $name)
    {
        $name = $name ?: $app['config']->get('database.default');
        $options = "database.connections.$name.options";
        $app['config']->set($options, (array) $app['config']->get($options) + [\PDO::ATTR_TIMEOUT => self::PATIENCE]);

        return $app['db']->connection($name);
    }

    /** The table, its key column, and whether an index of the key column alone keeps it unique. */
    private static function fence($app, string $table, string $key): array
    {
        $connection = self::connection($app, null);
        $schema = $connection->getSchemaBuilder();
        $name = $connection->getTablePrefix().$table;
        if (!$schema->hasTable($table)) {
            return ['exists' => false, 'name' => $name, 'column' => false, 'unique' => false];
        }

        return [
            'exists' => true,
            'name' => $name,
            'column' => in_array(strtolower($key), array_map('strtolower', $schema->getColumnListing($table)), true),
            'unique' => in_array([strtolower($key)], self::uniqueIndexes($connection, $name), true),
        ];
    }

    /** The columns of each index that is unique over whole columns of all rows. */
    private static function uniqueIndexes($connection, string $table): array
    {
        $indexes = [];
        switch ($connection->getDriverName()) {
            case 'mysql':
            case 'mariadb':
                $rows = $connection->select('select index_name as name, column_name as col, sub_part as part from information_schema.statistics
                    where table_schema = database() and table_name = ? and non_unique = 0 order by index_name, seq_in_index', [$table]);
                break;
            case 'pgsql':
                $rows = $connection->select('select i.indexrelid::text as name, a.attname as col, null as part from pg_index i
                    join lateral unnest(i.indkey) with ordinality as k(attnum, n) on k.n <= i.indnkeyatts
                    left join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
                    where i.indrelid = to_regclass(?) and i.indisunique and i.indisvalid and i.indpred is null order by 1, k.n', ['"'.$table.'"']);
                break;
            case 'sqlite':
                $rows = $connection->select('select l.name as name, c.name as col, null as part from pragma_index_list(?) l
                    join pragma_index_info(l.name) c where l."unique" = 1 and l.partial = 0 order by 1, c.seqno', [$table]);
                $rows = array_merge($rows, $connection->select("select 'primary' as name, name as col, null as part from pragma_table_info(?) where pk > 0 order by pk", [$table]));
                break;
            default:
                throw new \RuntimeException('indexes of a '.$connection->getDriverName().' database cannot be read');
        }
        foreach ($rows as $row) {
            $row = array_change_key_case((array) $row);
            $indexes[$row['name']][] = $row['part'] === null ? strtolower((string) $row['col']) : '';
        }

        return array_values($indexes);
    }
}
