<?php
// Laravel 13.7 brought this interface. Older frameworks do not call the method,
// but the entry goes by the interface.

namespace Illuminate\Contracts\Queue;

interface Interruptible
{
    public function interrupted(int $signal): void;
}
