import { render } from 'preact';
import { html } from './html.ts';
import { Layout } from './layout.ts';
import { viewer } from './session.ts';
import { SignIn } from './views/sign-in.ts';

function App() {
  return viewer.value ? html`<${Layout} />` : html`<${SignIn} />`;
}

render(html`<${App} />`, document.body);
