/** Small parts of asynchronous code that several modules share. Knows nothing of the sidecar. */

/** A promise and the functions that settle it. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

export function deferred<T>(): Deferred<T> {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  // Nobody may be waiting yet when it fails: that is no unhandled rejection.
  promise.catch(() => undefined);
  return { promise, resolve, reject };
}

/** Whether `promise` settled within `milliseconds`. Its failure is not raised. */
export async function settledWithin(promise: Promise<unknown>, milliseconds: number): Promise<boolean> {
  const late = deferred<boolean>();
  const timer = setTimeout(() => late.resolve(false), milliseconds);
  const settled = promise.then(
    () => true,
    () => true,
  );
  try {
    return await Promise.race([settled, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

export function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** Call `action` once when `signal` aborts, at once if it has; the result takes it back. */
export function onAbort(signal: AbortSignal | undefined, action: () => void): () => void {
  if (signal === undefined) return () => undefined;
  if (signal.aborted) {
    action();
    return () => undefined;
  }
  signal.addEventListener("abort", action, { once: true });
  return () => signal.removeEventListener("abort", action);
}
