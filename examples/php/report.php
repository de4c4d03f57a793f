<?php
// Reports events about a game, as a games service does: first a single event, then a batch of two.
//
//   php report.php GAME_ID CREATOR_ID PLAYER_ID
//
// COURTSIDE_URL is the address of the service, COURTSIDE_INTAKE_KEY is one of its intake keys. The program needs no
// extension.
declare(strict_types=1);

$url = getenv('COURTSIDE_URL') ?: 'http://127.0.0.1:3000';
$key = getenv('COURTSIDE_INTAKE_KEY');
if (!$key || $argc !== 4) {
    fwrite(STDERR, "usage: COURTSIDE_INTAKE_KEY=… php report.php GAME_ID CREATOR_ID PLAYER_ID\n");
    exit(1);
}
[$gameId, $creatorId, $playerId] = array_map('intval', array_slice($argv, 1));

// `data` is the whole state of the game after the event, so the service needs no earlier event to understand it.
$game = [
    'game_id' => $gameId,
    'creator_id' => $creatorId,
    'player_ids' => [$creatorId, $playerId],
    'starts_at' => (new DateTimeImmutable('+3 days'))->format(DATE_RFC3339),
];
$joined = createEvent('game_joined', $game + ['actor_id' => $playerId]);
$moved = createEvent('game_updated', $game + ['place' => 'Court 2']);
$cancelled = createEvent('game_cancelled', $game + ['actor_id' => $creatorId]);

$single = deliver($joined, 'application/cloudevents+json');
$batch = deliver([$moved, $cancelled], 'application/cloudevents-batch+json');
if (!isset($batch['results'])) {
    throw new RuntimeException("the service refused the whole batch: {$batch['message']}");
}

$exitCode = 0;
foreach ([$single + ['id' => $joined['id']], ...$batch['results']] as $result) {
    // A refused single event is an error without `status`. In a batch its `status` is `rejected`. Another attempt does
    // not help in either case: a developer has to look at it.
    $status = $result['status'] ?? 'rejected';
    if ($status === 'rejected') {
        $exitCode = 1;
    }
    echo "{$result['id']} $status: ", $result['message'] ?? "{$result['notifications']} notification(s)", "\n";
}
exit($exitCode);

/**
 * Creates an event with an id and a time. A games service creates it in the transaction that changes the game, and
 * stores it in a table until it is delivered. `source` and `id` identify the event forever. `time` states the order of
 * the events.
 */
function createEvent(string $type, array $data): array
{
    $now = (new DateTimeImmutable())->format('Y-m-d\TH:i:s.uP');
    $id = bin2hex(random_bytes(16));
    $source = '/games';
    return ['specversion' => '1.0', 'id' => $id, 'source' => $source, 'type' => $type, 'time' => $now, 'data' => $data];
}

/**
 * Sends until another attempt would not change the answer. Every attempt sends the same bytes. If only the answer was
 * lost, the next attempt is a `duplicate` without effect.
 */
function deliver(array $body, string $contentType): array
{
    global $url, $key;
    $context = stream_context_create(['http' => [
        'method' => 'POST',
        'header' => ["Authorization: Bearer $key", "Content-Type: $contentType"],
        'content' => json_encode($body, JSON_THROW_ON_ERROR),
        // Without this PHP does not return the body of an error.
        'ignore_errors' => true,
        'timeout' => 10,
    ]]);
    for ($attempt = 0; $attempt < 8; $attempt++) {
        $retryAfter = 0;
        $stream = @fopen("$url/internal/v1/events", 'r', false, $context);
        if ($stream) {
            $head = stream_get_meta_data($stream)['wrapper_data'];
            $status = (int) explode(' ', $head[0])[1];
            $answer = json_decode((string) stream_get_contents($stream), true);
            if (is_array($answer) && $status < 500 && !in_array($status, [408, 429], true)) {
                return $answer;
            }
            preg_match('/^retry-after: *(\d+)/im', implode("\n", $head), $found) && $retryAfter = (int) $found[1];
        }
        // The limit of the pause doubles. The random part spreads out clients that failed at the same moment.
        usleep($retryAfter * 1_000_000 + random_int(0, (int) (min(30, 0.5 * 2 ** $attempt) * 1_000_000)));
    }
    throw new RuntimeException('not delivered: keep the events and send them again later');
}
