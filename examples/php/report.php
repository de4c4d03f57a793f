<?php
// Reports facts about a game, as a games service does: one by itself, then two in a batch.
//
//   php report.php GAME_ID CREATOR_ID PLAYER_ID
//
// COURTSIDE_URL says where the service is, COURTSIDE_INTAKE_KEY is one of its intake keys. It needs no extension.
declare(strict_types=1);

$url = getenv('COURTSIDE_URL') ?: 'http://127.0.0.1:3000';
$key = getenv('COURTSIDE_INTAKE_KEY');
if (!$key || $argc !== 4) {
    fwrite(STDERR, "usage: COURTSIDE_INTAKE_KEY=… php report.php GAME_ID CREATOR_ID PLAYER_ID\n");
    exit(1);
}
[$gameId, $creatorId, $playerId] = array_map('intval', array_slice($argv, 1));

// `data` is the state of the game after the fact, so that any fact can be read without those before it.
$game = [
    'game_id' => $gameId,
    'creator_id' => $creatorId,
    'player_ids' => [$creatorId, $playerId],
    'starts_at' => (new DateTimeImmutable('+3 days'))->format(DATE_RFC3339),
];
$joined = fact('game_joined', $game + ['actor_id' => $playerId]);
$moved = fact('game_updated', $game + ['place' => 'Court 2']);
$cancelled = fact('game_cancelled', $game + ['actor_id' => $creatorId]);

$single = deliver($joined, 'application/cloudevents+json');
$batch = deliver([$moved, $cancelled], 'application/cloudevents-batch+json');
if (!isset($batch['results'])) {
    throw new RuntimeException("the whole batch was refused: {$batch['message']}");
}

$exitCode = 0;
foreach ([$single + ['id' => $joined['id']], ...$batch['results']] as $result) {
    // A refused single fact is an error without a status; in a batch it is `rejected`. Neither gets better by being sent
    // again: somebody has to look at it.
    $status = $result['status'] ?? 'rejected';
    if ($status === 'rejected') {
        $exitCode = 1;
    }
    echo "{$result['id']} $status: ", $result['message'] ?? "{$result['notifications']} notification(s)", "\n";
}
exit($exitCode);

/**
 * Names and dates a fact. A games service does this in the transaction in which the thing happens, and keeps it in a table
 * until it is delivered: `source` and `id` are its name for ever, and `time` says in which order things happened.
 */
function fact(string $type, array $data): array
{
    $now = (new DateTimeImmutable())->format('Y-m-d\TH:i:s.uP');
    $id = bin2hex(random_bytes(16));
    return ['specversion' => '1.0', 'id' => $id, 'source' => '/games', 'type' => $type, 'time' => $now, 'data' => $data];
}

/**
 * Sends until there is an answer that another try wouldn't change. The same bytes every time: if the first try arrived and
 * only its answer was lost, the second is a `duplicate` without effect.
 */
function deliver(array $body, string $contentType): array
{
    global $url, $key;
    $context = stream_context_create(['http' => [
        'method' => 'POST',
        'header' => ["Authorization: Bearer $key", "Content-Type: $contentType"],
        'content' => json_encode($body, JSON_THROW_ON_ERROR),
        // Else the body of an error can't be read.
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
        // Twice as long after each failure, and not all at once: others have lost the service too.
        usleep($retryAfter * 1_000_000 + random_int(0, (int) (min(30, 0.5 * 2 ** $attempt) * 1_000_000)));
    }
    throw new RuntimeException('not delivered; keep the facts and send them again later');
}
