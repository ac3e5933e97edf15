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
        $cache = self::cacheConnection($config);
        $sameDatabase = $cache !== '' && self::database($redis, $connection) === self::database($redis, $cache);
        $sameAddress = $sameDatabase && self::address($redis, $connection) === self::address($redis, $cache);

        return [
            'connection' => $connection,
            'exists' => isset($redis[$connection]) || isset($redis['clusters'][$connection]),
            'cluster' => !isset($redis[$connection]) && isset($redis['clusters'][$connection]),
            'prefix' => self::prefix($redis, $connection),
            'sharedWithCache' => $sameAddress,
            'maybeShared' => $sameDatabase && !$sameAddress,
        ];
    }

    /** The Redis connection of the default cache store; empty where that is on no Redis. */
    public static function cacheConnection($config): string
    {
        $store = self::cacheStore($config);

        return ($store['driver'] ?? '') === 'redis' ? self::text($store['connection'] ?? '') ?: 'default' : '';
    }

    private static function database(array $redis, string $name): string
    {
        $c = (array) ($redis[$name] ?? []);
        $url = parse_url((string) ($c['url'] ?? '')) ?: [];

        return trim((string) ($url['path'] ?? ''), '/') ?: (string) ($c['database'] ?? 0);
    }

    /** Where a server is; never printed. Another name may lead to the same one. */
    private static function address(array $redis, string $name): string
    {
        $c = (array) ($redis[$name] ?? $redis['clusters'][$name] ?? []);
        $url = parse_url((string) ($c['url'] ?? '')) ?: [];
        $host = $url['host'] ?? $c['host'] ?? '';

        return strtolower(implode(',', (array) $host)).' '.($url['port'] ?? $c['port'] ?? 6379);
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
        $path = preg_replace('~^file://~', '', self::text($channel['path'] ?? ''));
        if (!in_array($channel['driver'] ?? '', ['single', 'daily'], true) || $path === '' || strpos($path, '://') !== false) {
            return [];
        }
        // A daily file is a new one tomorrow.
        $writable = $channel['driver'] === 'daily' ? self::canMakeFilesIn(dirname($path)) : self::canWrite($path);

        return $writable ? [] : [Report::relative($path)];
    }

    private static function canWrite(string $file): bool
    {
        return file_exists($file) ? !is_dir($file) && is_writable($file) : self::canMakeFilesIn(dirname($file));
    }

    /** Directories that are missing are made, in the nearest one that is there. */
    private static function canMakeFilesIn(string $directory): bool
    {
        while (!file_exists($directory) && dirname($directory) !== $directory) {
            $directory = dirname($directory);
        }

        return is_dir($directory) && is_writable($directory);
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
