const FORGETTERS = new Set<() => void>();

/** Registers what to do when a session ends, for values that outlive the views: nothing of one is left to the next. */
export function onSignOut(forgetter: () => void): void {
  FORGETTERS.add(forgetter);
}

/** Forgets all that a session has left. */
export function forget(): void {
  for (const forgetter of FORGETTERS) forgetter();
}

const CLIENT_ID = 'portcullis.client_id';

/** The one thing that is kept in the browser, if the person wants it: the id of the client, which is no secret. */
export const rememberedClient = {
  get: () => localStorage.getItem(CLIENT_ID) ?? '',
  set: (id: string) => (id === '' ? localStorage.removeItem(CLIENT_ID) : localStorage.setItem(CLIENT_ID, id)),
};
