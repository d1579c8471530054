import { signal } from '@preact/signals';
import { render } from 'preact';
import { html } from './html.ts';
import { watchUse } from './idle.ts';
import { Layout } from './layout.ts';
import { notice, resume, viewer } from './session.ts';
import { enter, SignIn } from './views/sign-in.ts';

const isKnown = signal(false);

function App() {
  if (!isKnown.value) return html`<main aria-busy="true"></main>`;
  return viewer.value ? html`<${Layout} />` : html`<${SignIn} />`;
}

async function start(): Promise<void> {
  try {
    if (await resume()) await enter();
  } catch {
    notice.value = 'The server cannot be reached. Reload the page to continue where you were.';
  }
  isKnown.value = true;
}

render(html`<${App} />`, document.body);
watchUse();
// A key that is held down does something once.
addEventListener('keydown', (event) => event.repeat && event.key === 'Enter' && event.preventDefault(), { capture: true });
void start();
