<?php

namespace App;

/** What jobs report of themselves: a line in a file, an entry at the provider, or both. */
class Journal
{
    public static function note(string $event, $job, array $facts = []): void
    {
        $line = json_encode([
            'event' => $event,
            'class' => class_basename($job),
            'name' => $job->name,
            'at' => microtime(true),
            'pid' => getmypid(),
            'host' => gethostname(),
            'attempt' => $job->job ? $job->attempts() : 0,
        ] + $facts);
        if ($file = getenv('JOURNAL_FILE')) {
            file_put_contents($file, $line."\n", FILE_APPEND | LOCK_EX);
        }
        if ($provider = getenv('JOURNAL_URL')) {
            Http::post($provider, $line);
        }
    }
}
