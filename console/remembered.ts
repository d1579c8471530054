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

/** The one thing that is kept in the browser, if the person wants it: the id of the client, which is no secret. */
export const rememberedClient = {
  get: () => localStorage.getItem(CLIENT_ID) ?? '',
  set: (id: string) => (id === '' ? localStorage.removeItem(CLIENT_ID) : localStorage.setItem(CLIENT_ID, id)),
};
