<?php
// SPDX-License-Identifier: Apache-2.0

namespace QueueWorker\Facts;

use Illuminate\Support\Str;

/** Horizon's supervisors, put together as Horizon does it. */
final class Horizon
{
    private const ALIASES = ['tries' => 'maxTries', 'processes' => 'maxProcesses'];

    public static function version(): string
    {
        try {
            return class_exists('Composer\\InstalledVersions') && \Composer\InstalledVersions::isInstalled('laravel/horizon')
                ? (string) \Composer\InstalledVersions::getPrettyVersion('laravel/horizon') : '';
        } catch (\Throwable $e) {
            return '';
        }
    }

    public static function of($config, array $options): ?array
    {
        $horizon = $config->get('horizon');
        if (!is_array($horizon)) {
            return null;
        }
        $environment = (string) (self::option($options, 'environment') ?? $horizon['env'] ?? $config->get('app.env'));
        $environments = (array) ($horizon['environments'] ?? []);
        $chosen = self::chosen($environments, $environment);
        $supervisors = [];
        if ($chosen !== null) {
            foreach (array_replace_recursive((array) ($horizon['defaults'] ?? []), (array) $environments[$chosen]) as $name => $options) {
                $supervisors[] = self::supervisor($config, (string) $name, (array) $options);
            }
        }

        return [
            'environment' => $environment,
            'environments' => array_map('strval', array_keys($environments)),
            'chosen' => (string) $chosen,
            'fastTermination' => !empty($horizon['fast_termination']),
            'supervisors' => $supervisors,
        ];
    }

    /** The first key that fits: a pattern before the very name hides it. */
    private static function chosen(array $environments, string $environment)
    {
        foreach (array_keys($environments) as $pattern) {
            if (Str::is((string) $pattern, $environment)) {
                return $pattern;
            }
        }

        return null;
    }

    private static function supervisor($config, string $name, array $written): array
    {
        $s = [];
        foreach ($written as $key => $value) { // max_processes and processes are maxProcesses, too
            $s[self::ALIASES[$key] ?? Str::camel((string) $key)] = $value;
        }
        $connection = Configuration::text($s['connection'] ?? 'redis');
        $queues = ($s['queue'] ?? null) ?: Configuration::text($config->get("queue.connections.$connection.queue"));

        return [
            'name' => $name,
            'connection' => $connection,
            'queues' => explode(',', is_array($queues) ? implode(',', $queues) : (string) $queues),
            'balance' => ($s['balance'] ?? 'off') === false ? 'off' : Configuration::text($s['balance'] ?? 'off'),
            'timeout' => (int) ($s['timeout'] ?? 60),
            'tries' => (int) ($s['maxTries'] ?? 0),
            'memory' => (int) ($s['memory'] ?? 128),
            'minProcesses' => (int) ($s['minProcesses'] ?? 1),
            'maxProcesses' => (int) ($s['maxProcesses'] ?? 1),
        ];
    }

    private static function option(array $options, string $name): ?string
    {
        foreach ($options as $i => $word) {
            if (strpos($word, "--$name=") === 0) {
                return substr($word, strlen($name) + 3);
            }
            if ($word === "--$name") {
                return (string) ($options[$i + 1] ?? '');
            }
        }

        return null;
    }
}
