<?php

// As Composer writes it: classes of the application and of its packages.

return [
    'App\\Jobs\\Short' => dirname(__DIR__, 2).'/app/Jobs/Short.php',
    'Illuminate\\Contracts\\Queue\\Interruptible' => dirname(__DIR__).'/Interruptible.php',
];
