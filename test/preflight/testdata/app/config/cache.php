<?php

return [
    'default' => env('CACHE_DRIVER', 'redis'),
    'stores' => [
        'array' => ['driver' => 'array'],
        'file' => ['driver' => 'file', 'path' => storage_path('framework/cache/data')],
        'redis' => ['driver' => 'redis', 'connection' => env('REDIS_CACHE_CONNECTION', 'cache')],
    ],
    'prefix' => 'shop_cache',
];
