<?php
// SPDX-License-Identifier: Apache-2.0

namespace QueueWorker\Monitor;

/** Records on file descriptor 3, one JSON object a line. */
final class Report
{
    /** What the text of an error may say of its cause. Nothing else of it leaves. */
    private const HINTS = [
        'connection refused', 'connection timed out', 'operation timed out', 'timed out', 'timeout expired', 'no route to host', 'network is unreachable',
        'connection reset', 'connection lost', 'socket error', 'broken pipe', 'server has gone away', 'went away', 'lost connection', 'read error on connection',
        'failed to connect', 'getaddrinfo', 'name or service not known', 'could not resolve', 'could not translate', 'access denied', 'accessdenied', 'authentication failed', 'noauth', 'wrongpass', 'noperm', 'permission denied',
        'called without any password', 'loading', 'readonly', 'clusterdown', 'masterdown', 'crossslot', 'moved', 'busy', 'misconf', 'misdirected',
        'max number of clients', 'too many connections', 'unknown database', 'no such table', "doesn't exist",
        'does not exist', 'no such file or directory', 'could not find driver', 'certificate', 'is starting up', 'shutting down',
        'allowed memory size', 'class not found', 'not found',
    ];

    private static $out;

    private static $pid = 0;

    public static function open(): void
    {
        self::$pid = getmypid();
        self::$out = @fopen('php://fd/3', 'w');
        register_shutdown_function(static function () {
            $fatal = error_get_last();
            if (getmypid() === self::$pid && $fatal !== null && ($fatal['type'] & (E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR))) {
                self::failed('FatalError', self::hintIn($fatal['message']));
            }
        });
    }

    public static function failed(string $class, string $hint): void
    {
        self::record('failed', ['class' => $class, 'hint' => $hint]);
    }

    public static function record(string $kind, array $facts): void
    {
        $line = json_encode(['v' => 1, 'kind' => $kind] + $facts, JSON_PARTIAL_OUTPUT_ON_ERROR | JSON_INVALID_UTF8_SUBSTITUTE)."\n";
        if (!self::$out || @fwrite(self::$out, $line) !== strlen($line)) {
            fwrite(STDERR, "queueworker: file descriptor 3 is closed; what starts PHP must leave it open\n");
            exit(1);
        }
    }

    public static function hint(\Throwable $e): string
    {
        for ($cause = $e; $cause !== null; $cause = $cause->getPrevious()) {
            if (($hint = self::hintIn($cause->getMessage())) !== '') {
                return $hint;
            }
        }

        return '';
    }

    private static function hintIn(string $message): string
    {
        foreach (self::HINTS as $hint) {
            if (stripos($message, $hint) !== false) {
                return $hint;
            }
        }

        return '';
    }
}
