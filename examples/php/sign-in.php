<?php
// Signs a person in with the code from their mail, then shows who they are and what they were told.
//
//   php sign-in.php EMAIL [FIRST_NAME LAST_NAME]      with the names it is a sign-up
//
// COURTSIDE_URL says where the service is. The token stays in the file COURTSIDE_TOKEN_FILE, so that the next run asks for
// no code; in an app that file is the phone's keychain. It needs no extension.
declare(strict_types=1);

$url = getenv('COURTSIDE_URL') ?: 'http://127.0.0.1:3000';
$tokenFile = getenv('COURTSIDE_TOKEN_FILE') ?: '.courtside-token';
if ($argc !== 2 && $argc !== 4) {
    fail('usage: php sign-in.php EMAIL [FIRST_NAME LAST_NAME]');
}
$token = is_file($tokenFile) ? trim(file_get_contents($tokenFile)) : null;

if (!$token || !show()) {
    signIn($argv[1], array_slice($argv, 2));
    show();
}

/** Shows the profile and the newest notifications. Returns false when the session is over. */
function show(): bool
{
    $me = call('GET', '/api/v1/auth/me');
    if ($me === null) {
        return false;
    }
    echo "signed in as {$me['data']['first_name']} {$me['data']['last_name']} (user {$me['data']['id']})\n";
    $page = call('GET', '/api/v1/notifications');
    echo "{$page['meta']['unread_count']} unread of {$page['meta']['total']}\n";
    foreach ($page['data'] as $notification) {
        echo $notification['is_read'] ? ' ' : '*', " {$notification['title']}: {$notification['message']}\n";
    }
    return true;
}

/** Has a code mailed, and trades it for a token. */
function signIn(string $email, array $names): void
{
    $signUp = $names ? ['first_name' => $names[0], 'last_name' => $names[1], 'accept_cgu' => true] : [];
    // Both requests carry the old token if there is one. It opens nothing any more, but it gives this client a lane of its
    // own, so that a stranger who guesses at the address can't make its owner wait.
    $asked = expectOk(send('POST', '/api/v1/auth/request-otp', ['email' => $email] + $signUp));
    echo $asked['message'], "\ncode: ";
    // A string: 0042 is a code, 42 is not.
    $code = trim((string) fgets(STDIN));
    $verified = expectOk(send('POST', '/api/v1/auth/verify-otp', ['email' => $email, 'code' => $code]));
    keep($verified['access_token']);
}

/** A request of the person. An expired token is renewed once, and the request repeated. Null: the session is over. */
function call(string $method, string $path, ?array $body = null): ?array
{
    $answer = send($method, $path, $body);
    if ($answer['status'] === 401) {
        $refreshed = send('POST', '/api/v1/auth/refresh');
        // 7 days have passed since the sign-in, or the session was ended. Only a 401 says so; after any other error the
        // token is still worth keeping.
        if ($refreshed['status'] === 401) {
            return null;
        }
        keep(expectOk($refreshed)['access_token']);
        $answer = send($method, $path, $body);
    }
    return expectOk($answer);
}

/** One request. The answer is JSON, even for an error. */
function send(string $method, string $path, ?array $body = null): array
{
    global $url, $token;
    $headers = $token ? ["Authorization: Bearer $token"] : [];
    if ($body !== null) {
        $headers[] = 'Content-Type: application/json';
    }
    $stream = fopen($url . $path, 'r', false, stream_context_create(['http' => [
        'method' => $method,
        'header' => $headers,
        'content' => $body === null ? '' : json_encode($body, JSON_THROW_ON_ERROR),
        // Else the body of an error can't be read.
        'ignore_errors' => true,
        'timeout' => 10,
    ]]));
    if (!$stream) {
        fail("$url can't be reached");
    }
    $head = stream_get_meta_data($stream)['wrapper_data'];
    return [
        'status' => (int) explode(' ', $head[0])[1],
        'retry_after' => preg_match('/^retry-after: *(\d+)/im', implode("\n", $head), $found) ? $found[1] : null,
        'body' => json_decode(stream_get_contents($stream), true, 512, JSON_THROW_ON_ERROR),
    ];
}

/** To be kept before it is used: whoever loses the newest token may have to sign in again. */
function keep(string $newest): void
{
    global $token, $tokenFile;
    $token = $newest;
    umask(0077);
    file_put_contents($tokenFile, $newest);
}

/** Every error has a `message` for people and a `code` for programs; 429 and 503 say when to try again. */
function expectOk(array $answer): array
{
    if ($answer['status'] !== 200) {
        $again = $answer['retry_after'] === null ? '' : " (again in {$answer['retry_after']} s)";
        fail("{$answer['status']} {$answer['body']['code']}: {$answer['body']['message']}$again");
    }
    return $answer['body'];
}

function fail(string $text): never
{
    fwrite(STDERR, "$text\n");
    exit(1);
}
