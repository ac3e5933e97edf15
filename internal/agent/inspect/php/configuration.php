<?php
// SPDX-License-Identifier: Apache-2.0

namespace QueueWorker\Facts;

/** The values of the application's configuration that the chain depends on. */
final class Configuration
{
    /** Functions without which a worker hears no signal, keeps no time limit, or cannot end itself. */
    private const FUNCTIONS = [
        'pcntl_signal', 'pcntl_async_signals', 'pcntl_alarm', 'pcntl_sigprocmask', 'posix_kill', 'getmypid',
    ];

    public static function of($app, array $ask): array
    {
        $config = $app['config'];

        return [
            'php' => self::php(),
            'laravel' => [
                'version' => (string) $app->version(),
                'environment' => (string) $config->get('app.env'),
                'horizon' => Horizon::version(),
                'cachedConfig' => $app->configurationIsCached() ? Report::relative($app->getCachedConfigPath()) : '',
            ],
            'queue' => self::queue($config, $ask['connection']),
            'failed' => self::failed($config),
            'cache' => self::cache($config),
            'redis' => self::redis($config, $ask['connection']),
            'horizon' => Horizon::of($config, $ask['options']),
            'unwritableLogs' => self::unwritableLogs($config, (string) $config->get('logging.default'), 3),
        ];
    }

    private static function php(): array
    {
        return [
            'version' => PHP_VERSION,
            'pcntl' => extension_loaded('pcntl'),
            'posix' => extension_loaded('posix'),
            'missing' => array_values(array_filter(self::FUNCTIONS, function ($function) {
                return !function_exists($function);
            })),
            'memoryLimit' => self::bytes((string) ini_get('memory_limit')),
            'memoryLimitAtStart' => self::bytes((string) ini_get_all('core')['memory_limit']['global_value']),
        ];
    }

    /** As PHP reads its own sizes; -1 is no limit. */
    private static function bytes(string $size): int
    {
        $units = ['k' => 1024, 'm' => 1024 ** 2, 'g' => 1024 ** 3];

        return (int) $size * ($units[strtolower(substr(trim($size), -1))] ?? 1);
    }

    private static function queue($config, string $name): array
    {
        $name = $name === '' ? (string) $config->get('queue.default') : $name;
        $connections = (array) $config->get('queue.connections');
        $connection = $connections[$name] ?? null;
        $known = is_array($connection);

        return [
            'connection' => $name,
            'connections' => array_map('strval', array_keys($connections)),
            'exists' => $known,
            'driver' => $known ? self::text($connection['driver'] ?? '') : '',
            'queue' => $known ? self::text($connection['queue'] ?? '') : '',
            'retryAfter' => self::setting($known ? $connection : [], 'retry_after'),
            'blockFor' => self::setting($known ? $connection : [], 'block_for'),
            'afterCommit' => $known && !empty($connection['after_commit']),
        ];
    }

    /** The store of failed jobs: the driver as it is written, and what Laravel makes of it. */
    public static function failed($config): array
    {
        $failed = (array) $config->get('queue.failed');
        $driver = array_key_exists('driver', $failed) ? self::text($failed['driver'] ?? 'null') : '';
        $store = in_array($driver, ['null', 'dynamodb', 'database-uuids', 'file'], true) ? $driver : (isset($failed['table']) ? 'database' : 'null');

        return ['driver' => $driver, 'store' => $store, 'table' => self::text($failed['table'] ?? '')];
    }

    private static function cache($config): array
    {
        return [
            'store' => self::text($config->get('cache.default') ?? 'null'),
            'driver' => self::text(self::cacheStore($config)['driver'] ?? ''),
            'prefix' => self::text($config->get('cache.prefix')),
        ];
    }

    /** The default store. No name, or null, is the store that keeps nothing. */
    private static function cacheStore($config): array
    {
        $store = self::text($config->get('cache.default') ?? 'null');

        return $store === 'null' ? ['driver' => 'null'] : (array) (((array) $config->get('cache.stores'))[$store] ?? []);
    }

    /** How the queue's Redis stands to the cache's. Hosts stay here: only whether they are the same is told. */
    private static function redis($config, string $name): ?array
    {
        $name = $name === '' ? (string) $config->get('queue.default') : $name;
        $queue = ((array) $config->get('queue.connections'))[$name] ?? [];
        if (($queue['driver'] ?? '') !== 'redis') {
            return null;
        }
        $redis = (array) $config->get('database.redis');
        $connection = self::text($queue['connection'] ?? '') ?: 'default';
        $cache = ((array) $config->get('cache.stores'))[self::text($config->get('cache.default'))] ?? [];
        $shared = ($cache['driver'] ?? '') === 'redis'
            && self::server($redis, $connection) === self::server($redis, self::text($cache['connection'] ?? '') ?: 'default');

        return [
            'connection' => $connection,
            'exists' => isset($redis[$connection]) || isset($redis['clusters'][$connection]),
            'cluster' => !isset($redis[$connection]) && isset($redis['clusters'][$connection]),
            'prefix' => self::prefix($redis, $connection),
            'sharedWithCache' => $shared,
        ];
    }

    /** Names one database of one server; never printed. */
    private static function server(array $redis, string $name): string
    {
        $c = (array) ($redis[$name] ?? $redis['clusters'][$name] ?? []);
        $url = parse_url((string) ($c['url'] ?? '')) ?: [];

        return implode("\n", [
            $url['host'] ?? (is_array($c['host'] ?? '') ? implode(',', $c['host']) : $c['host'] ?? ''),
            $url['port'] ?? $c['port'] ?? 6379,
            trim((string) ($url['path'] ?? ''), '/') ?: (string) ($c['database'] ?? 0),
        ]);
    }

    private static function prefix(array $redis, string $name): string
    {
        $c = (array) ($redis[$name] ?? []);

        return self::text($c['prefix'] ?? $c['options']['prefix'] ?? $redis['options']['prefix'] ?? '');
    }

    /** Files that a log channel could not write to. */
    private static function unwritableLogs($config, string $name, int $depth): array
    {
        $channel = ((array) $config->get('logging.channels'))[$name] ?? null;
        if (!is_array($channel) || $depth === 0) {
            return [];
        }
        if (($channel['driver'] ?? '') === 'stack') {
            $channels = $channel['channels'] ?? [];
            $files = [];
            foreach (is_string($channels) ? explode(',', $channels) : $channels as $part) {
                $files = array_merge($files, self::unwritableLogs($config, self::text($part), $depth - 1));
            }

            return $files;
        }
        $path = self::text($channel['path'] ?? '');
        if (!in_array($channel['driver'] ?? '', ['single', 'daily'], true) || $path === '') {
            return [];
        }
        $place = $path;
        while (!file_exists($place) && dirname($place) !== $place) {
            $place = dirname($place);
        }
        $writable = is_writable($place) && ($channel['driver'] === 'single' || is_writable(is_dir($place) ? $place : dirname($place)));

        return $writable ? [] : [Report::relative($path)];
    }

    /** A number, however it is written, and whether it was written at all. */
    public static function setting(array $values, string $key): array
    {
        $value = $values[$key] ?? null;
        if (is_bool($value)) {
            $value = (int) $value;
        }

        return [
            'set' => array_key_exists($key, $values),
            'value' => is_numeric($value) ? (int) $value : null,
            'text' => $value === null || is_numeric($value) ? '' : (is_string($value) ? substr($value, 0, 60) : gettype($value)),
        ];
    }

    public static function text($value): string
    {
        return is_scalar($value) ? (string) $value : '';
    }
}
