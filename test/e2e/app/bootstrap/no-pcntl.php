<?php
// A PHP without pcntl, as the official images are built. Debian's has it built
// in, so the framework is told that it has not; the tests also disable its
// functions.

namespace Illuminate\Queue;

function extension_loaded(string $name): bool
{
    return $name !== 'pcntl' && \extension_loaded($name);
}
