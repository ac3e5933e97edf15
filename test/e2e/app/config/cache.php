<?php

return [
    'default' => env('CACHE_DRIVER', 'file'),
    'stores' => [
        'array' => ['driver' => 'array'],
        'file' => ['driver' => 'file', 'path' => env('CACHE_PATH', storage_path('framework/cache/data'))],
        'redis' => ['driver' => 'redis', 'connection' => 'default'],
    ],
    'prefix' => 'shop_cache',
];
