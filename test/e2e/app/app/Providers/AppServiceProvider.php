<?php

namespace App\Providers;

use App\Console\HorizonWork;
use Illuminate\Queue\Events\JobProcessing;
use Illuminate\Queue\Events\Looping;
use Illuminate\Support\Facades\Event;
use Illuminate\Support\ServiceProvider;

/** Misbehaves on request, as applications do: see the tests that set these variables. */
class AppServiceProvider extends ServiceProvider
{
    public function register(): void
    {
        $this->listen((string) getenv('APP_LISTENERS'));
        $this->app->bind(HorizonWork::class, function ($app) {
            return new HorizonWork($app['queue.worker'], $app['cache.store']);
        });
    }

    public function boot(): void
    {
        if ($seconds = (float) getenv('APP_SLOW_BOOT')) {
            file_put_contents(getenv('APP_SLOW_BOOT_MARK'), getmypid());
            usleep((int) ($seconds * 1e6));
        }
        if ($microseconds = (int) getenv('APP_WIDE_WINDOW')) {
            // Between the look at the gate and the pop.
            Event::listen(Looping::class, function () use ($microseconds) {
                usleep($microseconds);
            });
        }
    }

    private function listen(string $kind): void
    {
        $answers = [
            'true' => function () {
                return true;
            },
            'false' => function () {
                return false;
            },
            'throw' => function () {
                throw new \RuntimeException('a listener of the application throws');
            },
        ];
        if (isset($answers[$kind])) {
            Event::listen(Looping::class, $answers[$kind === 'false' ? 'true' : $kind]);
            Event::listen(JobProcessing::class, $answers[$kind]);
        }
    }
}
