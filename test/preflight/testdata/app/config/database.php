<?php

return [
    'default' => env('DB_CONNECTION', 'sqlite'),
    'connections' => [
        'sqlite' => ['driver' => 'sqlite', 'database' => env('DB_DATABASE', database_path('database.sqlite')), 'prefix' => ''],
        'mysql' => [
            'driver' => 'mysql', 'host' => '127.0.0.1', 'port' => env('DB_PORT'), 'database' => env('DB_DATABASE'),
            'username' => 'fence', 'password' => env('DB_PASSWORD', ''), 'charset' => 'utf8mb4', 'collation' => 'utf8mb4_unicode_ci', 'prefix' => '',
        ],
        'pgsql' => [
            'driver' => 'pgsql', 'host' => '127.0.0.1', 'port' => env('DB_PORT'), 'database' => 'postgres',
            'username' => 'fence', 'password' => env('DB_PASSWORD', ''), 'charset' => 'utf8', 'prefix' => '', 'schema' => 'public',
        ],
    ],
    'migrations' => 'migrations',
    'redis' => [
        'client' => 'phpredis',
        'options' => ['prefix' => env('REDIS_PREFIX', 'shop_database_')],
        'default' => [
            'host' => env('REDIS_HOST', '127.0.0.1'), 'port' => env('REDIS_PORT', '6379'),
            'password' => env('REDIS_PASSWORD'), 'database' => env('REDIS_DB', '0'),
        ],
        'cache' => [
            'host' => env('REDIS_CACHE_HOST', '127.0.0.1'), 'port' => env('REDIS_CACHE_PORT', env('REDIS_PORT', '6379')),
            'password' => env('REDIS_PASSWORD'), 'database' => env('REDIS_CACHE_DB', '1'),
        ],
    ],
];
