// An agent with one tool, written with OpenAI's own client. It plays sessions of a Millrace gateway: node agent.mjs URL SESSIONS
import OpenAI from 'openai';

const [gateway = 'http://127.0.0.1:8090', sessions = '16'] = process.argv.slice(2);
const token = process.env.GATEWAY_TOKEN ?? 'none';
const headers = {'Content-Type': 'application/json', Authorization: `Bearer ${token}`};

const tools = [{
  type: 'function',
  function: {
    name: 'add',
    description: 'Adds two numbers.',
    parameters: {type: 'object', properties: {a: {type: 'number'}, b: {type: 'number'}}, required: ['a', 'b']},
  },
}];

async function post(path, body) {
  for (;;) {
    const answer = await fetch(gateway + path, {method: 'POST', headers, body: JSON.stringify(body)})
        .catch(() => ({status: 503}));
    if (answer.status !== 503 && answer.status !== 429) return answer.json();
    await new Promise(later => setTimeout(later, 500)); // nothing is released yet, or the gateway is coming back
  }
}

async function play() {
  const session = await post('/v1/sessions', {agent: 'adder'});
  const client = new OpenAI({baseURL: session.openai_base_url, apiKey: token, maxRetries: 10});
  const messages = [{role: 'user', content: session.prompt}];

  const first = (await client.chat.completions.create({model: session.policy, messages, tools, max_tokens: 16}))
      .choices[0].message;
  messages.push(first);
  if (first.tool_calls) {
    for (const call of first.tool_calls) {
      const {a, b} = JSON.parse(call.function.arguments);
      messages.push({role: 'tool', tool_call_id: call.id, content: String(a + b)});
    }
  } else {
    messages.push({role: 'user', content: 'Are you sure?'});
  }

  let text = '';
  const stream = await client.chat.completions.create(
      {model: session.policy, messages, tools, max_tokens: 16, stream: true});
  for await (const piece of stream) text += piece.choices[0]?.delta?.content ?? '';

  const reward = text.includes(String(session.environment_state.answer ?? '?')) ? 1 : 0;
  return post(`/v1/sessions/${session.session}/complete`, {reward});
}

const lanes = Array.from({length: 8}, async (_, lane) => {
  for (let i = lane; i < Number(sessions); i += 8) {
    const done = await play();
    console.log(done.rollout_id ?? JSON.stringify(done), 'reward', done.reward, 'turns', JSON.stringify(done.trained_turns));
  }
});
await Promise.all(lanes);
