import { effect, signal } from '@preact/signals';

const FORGETTERS = new Set<() => void>();

/** Registers what to do when a person signs out, or another one signs in, for values that outlive the views. */
export const onSignOut = (forgetter: () => void): void => void FORGETTERS.add(forgetter);

/** Forgets all that the sessions of a person have left. */
export function forget(): void {
  for (const forgetter of FORGETTERS) forgetter();
}

/** A text that the browser keeps, if it allows it. No secret is among them. */
function remembered(name: string) {
  const key = `portcullis.${name}`;
  return {
    get: () => inBrowser((kept) => kept.getItem(key)) ?? '',
    set: (text: string) => inBrowser((kept) => (text === '' ? kept.removeItem(key) : kept.setItem(key, text))),
    /** Calls `then` when another tab changes the text. */
    onChanged: (then: () => void) => addEventListener('storage', (event) => event.key === key && then()),
  };
}

/** The id of the console client by which somebody signed in here last. */
export const rememberedClient = remembered('client_id');
/** The id of the console client whose session a reload continues. */
export const continuedClient = remembered('session');

function inBrowser<Value>(use: (kept: Storage) => Value): Value | undefined {
  try {
    return use(localStorage);
  } catch {
    return undefined;
  }
}

/** A choice for this browser, which is stored once it is another than the first of its values. */
function choice<Value extends string>(name: string, [first, ...others]: readonly [Value, ...Value[]]) {
  const kept = remembered(name);
  const chosen = signal<Value>(others.find((value) => value === kept.get()) ?? first);
  chosen.subscribe((value) => kept.set(value === first ? '' : value));
  return chosen;
}

export const zone = choice('times', ['local', 'utc']);
/** The colours: those of the system, light or dark. */
export const theme = choice('theme', ['system', 'light', 'dark']);
effect(() => {
  document.documentElement.style.colorScheme = theme.value === 'system' ? '' : theme.value;
});
