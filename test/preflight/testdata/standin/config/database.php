<?php

$redis = ['host' => '127.0.0.1', 'port' => '1', 'database' => '0'];

return [
    'redis' => [
        'options' => ['prefix' => env('REDIS_PREFIX', 'shop-database-')],
        'cache' => ['database' => '1'] + $redis,
    ] + (getenv('REDIS_CLUSTER') ? ['clusters' => ['default' => [$redis]]] : ['default' => $redis]),
];
