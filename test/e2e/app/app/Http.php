<?php

namespace App;

/** One HTTP request by curl. Seconds 0 is curl's own default: no limit. */
class Http
{
    public static function post(string $url, string $body, array $headers = [], int $seconds = 5): string
    {
        $curl = curl_init($url);
        curl_setopt_array($curl, [
            CURLOPT_POST => true,
            CURLOPT_POSTFIELDS => $body,
            CURLOPT_HTTPHEADER => array_merge(['Content-Type: application/json'], $headers),
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_TIMEOUT => $seconds,
        ]);
        $answer = curl_exec($curl);
        if ($answer === false) {
            throw new \RuntimeException('POST '.$url.': '.curl_error($curl));
        }

        return $answer;
    }
}
