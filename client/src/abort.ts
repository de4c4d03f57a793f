/**
 * Calls the listener when the signal is aborted. If the signal is already aborted, calls the listener immediately,
 * because such a signal sends no more events.
 * @returns a function that removes the listener
 */
export function onAbort(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (signal?.aborted) listener()
  else signal?.addEventListener('abort', listener)
  return () => signal?.removeEventListener('abort', listener)
}
