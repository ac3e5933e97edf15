<?php

// The names and defaults of each version: up to 10 the reservation is a number
// in the file, from 11 on it comes from the environment.

$own = version_compare((string) getenv('LARAVEL_VERSION'), '11.0', '<');

return [
    'default' => env('QUEUE_CONNECTION', $own ? 'sync' : 'database'),
    'connections' => [
        'redis' => [
            'driver' => 'redis',
            'connection' => $own ? 'default' : env('REDIS_QUEUE_CONNECTION', 'default'),
            'queue' => env('REDIS_QUEUE', 'default'),
            'retry_after' => $own ? 90 : (int) env('REDIS_QUEUE_RETRY_AFTER', 90),
            'block_for' => null,
            'after_commit' => false,
        ],
        'sqs' => ['driver' => 'sqs', 'queue' => env('SQS_QUEUE', 'default'), 'after_commit' => false],
    ],
    'failed' => ['driver' => 'dynamodb', 'table' => 'failed_jobs'],
];
