<?php

// As Composer writes it where the class map is not optimised.

return ['App\\' => [dirname(__DIR__, 2).'/app']];
