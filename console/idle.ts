import { useEffect, useState } from 'preact/hooks';
import { html } from './html.ts';
import { toast } from './kit/overlay.ts';
import { accessToken, isPerson, signOut, viewer } from './session.ts';

/** The time without use, in ms, after which a person is signed out; the server ends the session after the same time. */
const IDLE_MS = 30 * 60_000;
/** How long before that a toast says so. */
const WARNING_MS = 2 * 60_000;
const CHECK_MS = 5_000;
const USES = ['click', 'keydown', 'wheel', 'touchmove'];

/** When the console was used last, in any tab. */
let usedAt = Date.now();
let hide: (() => void) | undefined;
const tabs = new BroadcastChannel('portcullis.use');

function use(): void {
  const now = Date.now();
  if (now - usedAt > CHECK_MS) tabs.postMessage('used');
  noteUse();
}

function noteUse(): void {
  usedAt = Date.now();
  hide?.();
  hide = undefined;
}

/** Signs a person out who has not used the console, warns before, and keeps the session of one who has. */
function check(): void {
  if (!viewer.value || !isPerson()) return;
  const idleMs = Date.now() - usedAt;
  if (idleMs >= IDLE_MS) {
    noteUse();
    signOut('You were signed out after 30 minutes without use.');
  } else if (idleMs >= IDLE_MS - WARNING_MS) {
    hide ??= toast(html`<${Countdown} toMs=${usedAt + IDLE_MS} />`, { action: { text: 'Stay signed in', act: use }, shownMs: WARNING_MS });
  } else if (idleMs < 60_000) {
    accessToken().catch(() => undefined);
  }
}

function Countdown({ toMs }: { toMs: number }) {
  const [left, setLeft] = useState(0);
  useEffect(() => {
    const count = () => setLeft(Math.max(0, Math.ceil((toMs - Date.now()) / 1000)));
    count();
    const timer = setInterval(count, 1000);
    return () => clearInterval(timer);
  }, [toMs]);
  return html`You will be signed out, because the console was not used. <span aria-hidden="true">${Math.floor(left / 60)}:${String(left % 60).padStart(2, '0')}</span>`;
}

export function watchUse(): void {
  for (const type of USES) addEventListener(type, use, { capture: true, passive: true });
  tabs.onmessage = noteUse;
  setInterval(check, CHECK_MS);
}
