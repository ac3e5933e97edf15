<?php

namespace App\Jobs;

/** Reads from a server that says nothing. */
class ReadsSocket extends Job
{
    public $address = '';

    protected function run(): void
    {
        $socket = stream_socket_client($this->address);
        stream_set_timeout($socket, 3600);
        fgets($socket);
    }
}
