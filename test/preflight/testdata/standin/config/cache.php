<?php

$own = version_compare((string) getenv('LARAVEL_VERSION'), '11.0', '<');

return [
    'default' => $own ? env('CACHE_DRIVER', 'file') : env('CACHE_STORE', 'database'),
    'stores' => ['file' => ['driver' => 'file'], 'database' => ['driver' => 'database'], 'redis' => ['driver' => 'redis', 'connection' => 'cache']],
    'prefix' => 'shop_cache',
];
