<?php
// SPDX-License-Identifier: Apache-2.0

namespace QueueWorker\Facts;

/** Horizon's supervisors, put together as Horizon does it. */
final class Horizon
{
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
        $environment = self::option($options, 'environment') ?: ($horizon['env'] ?? '') ?: $config->get('app.env');
        $environments = (array) ($horizon['environments'] ?? []);
        $plan = self::plan($environments, (string) $environment);
        $supervisors = [];
        if ($plan !== null) {
            foreach (array_replace_recursive((array) ($horizon['defaults'] ?? []), $plan) as $name => $supervisor) {
                $supervisors[] = self::supervisor((string) $name, (array) $supervisor);
            }
        }

        return [
            'environment' => (string) $environment,
            'environments' => array_map('strval', array_keys($environments)),
            'fastTermination' => !empty($horizon['fast_termination']),
            'supervisors' => $supervisors,
        ];
    }

    private static function plan(array $environments, string $environment): ?array
    {
        if (isset($environments[$environment])) {
            return (array) $environments[$environment];
        }
        foreach ($environments as $pattern => $plan) {
            if (strpos((string) $pattern, '*') !== false && fnmatch((string) $pattern, $environment)) {
                return (array) $plan;
            }
        }

        return null;
    }

    private static function supervisor(string $name, array $s): array
    {
        $queues = $s['queue'] ?? ['default'];

        return [
            'name' => $name,
            'connection' => Configuration::text($s['connection'] ?? 'redis'),
            'queues' => array_map('strval', is_array($queues) ? array_values($queues) : explode(',', (string) $queues)),
            'balance' => ($s['balance'] ?? 'off') === false ? 'off' : Configuration::text($s['balance'] ?? 'off'),
            'timeout' => (int) ($s['timeout'] ?? 60),
            'tries' => (int) ($s['tries'] ?? 0),
            'memory' => (int) ($s['memory'] ?? 128),
            'minProcesses' => (int) ($s['minProcesses'] ?? 1),
            'maxProcesses' => (int) ($s['maxProcesses'] ?? $s['processes'] ?? 1),
        ];
    }

    private static function option(array $options, string $name): string
    {
        foreach ($options as $i => $word) {
            if (strpos($word, "--$name=") === 0) {
                return substr($word, strlen($name) + 3);
            }
            if ($word === "--$name") {
                return (string) ($options[$i + 1] ?? '');
            }
        }

        return '';
    }
}
