const FORGETTERS = new Set<() => void>();

/** Registers what to do when a person signs out, or another one signs in, for values that outlive the views. */
export function onSignOut(forgetter: () => void): void {
  FORGETTERS.add(forgetter);
}

/** Forgets all that the sessions of a person have left. */
export function forget(): void {
  for (const forgetter of FORGETTERS) forgetter();
}

const CLIENT_ID = 'portcullis.client_id';

/**
 * The client id, the only stored value: not a secret, and stored only if the user wants it and the browser allows it.
 */
export const rememberedClient = {
  get: () => inBrowser((kept) => kept.getItem(CLIENT_ID)) ?? '',
  set: (id: string) => inBrowser((kept) => (id === '' ? kept.removeItem(CLIENT_ID) : kept.setItem(CLIENT_ID, id))),
};

function inBrowser<Value>(use: (kept: Storage) => Value): Value | undefined {
  try {
    return use(localStorage);
  } catch {
    return undefined;
  }
}
