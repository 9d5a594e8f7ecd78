// Checks a gateway with the official clients and prints one JSON line per case: GATEWAY_TOKEN=TOKEN node conformance.mjs URL
// The policy behind the gateway repeats the last message of the prompt, with {seed} replaced by the seed of the choice.
// The page docs/reference/gateway-conformance.md lists the names and claims below: keep each on the first line of its case.
import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';

const gateway = process.argv[2];
const token = process.env.GATEWAY_TOKEN;
const cases = [];
const openai = (name, claim, run) => cases.push({api: 'openai', name, claim, run});
const anthropic = (name, claim, run) => cases.push({api: 'anthropic', name, claim, run});

const TEXT = 'Grüße, 世界 👩‍🚀!';
const CALLS = ['<tool_call>', '{"name": "add", "arguments": {"a": 1, "b": 2}}', '</tool_call>',
  '<tool_call>', '{"name": "add", "arguments": {"a": 3, "b": 4}}', '</tool_call>'].join('\n');
const parameters = {type: 'object', properties: {a: {type: 'number'}, b: {type: 'number'}}, required: ['a', 'b']};
const tools = [{type: 'function', function: {name: 'add', description: 'Adds two numbers.', parameters}}];
const custom = [{name: 'add', description: 'Adds two numbers.', input_schema: parameters}];

const user = content => [{role: 'user', content}];
const chat = (client, content, more = {}) => client.chat.completions.create({model: 'policy', messages: user(content), ...more});
const streamed = (client, content, more = {}) => client.chat.completions.stream({model: 'policy', messages: user(content), ...more});
const message = (client, content, more = {}) => client.messages.create({model: 'policy', max_tokens: 256, messages: user(content), ...more});
const text = bytes => Buffer.from(bytes).toString('utf8');

async function chunks(stream) {
  const all = [];
  for await (const chunk of stream) all.push(chunk);
  return all;
}

/** Requires that the client throws its own class for the status, with the error's fields. */
async function refused(answer, type, status, fields = {}) {
  const error = await answer.then(() => assert.fail('the call was answered'), thrown => thrown);
  assert.ok(error instanceof type, `${error.constructor.name}: ${error.message}`);
  assert.equal(error.status, status);
  assert.equal(typeof error.error.message, 'string');
  assert.equal(typeof error.error.type, 'string');
  for (const [name, value] of Object.entries(fields)) assert.equal(error.error[name], value, name);
  return `${error.constructor.name} ${status} ${error.error.code}`;
}

async function messageRefused(answer, type, status, kind) {
  const error = await answer.then(() => assert.fail('the call was answered'), thrown => thrown);
  assert.ok(error instanceof type, `${error.constructor.name}: ${error.message}`);
  assert.equal(error.status, status);
  assert.equal(error.error.type, 'error');
  assert.equal(error.error.error.type, kind);
  return `${error.constructor.name} ${status} ${kind}`;
}

function added(calls) {
  assert.deepEqual(calls.map(call => [call.type, call.function.name, JSON.parse(call.function.arguments)]),
      [['function', 'add', {a: 1, b: 2}], ['function', 'add', {a: 3, b: 4}]]);
  assert.notEqual(calls[0].id, calls[1].id);
}

openai('plain', 'A chat completion has an id, the model as named in the call, content, finish reason `stop` and a usage that adds up.',
    async ({client}) => {
      const answer = await chat(client, TEXT, {model: 'any-name'});
      assert.equal(answer.object, 'chat.completion');
      assert.match(answer.id, /^chatcmpl-/);
      assert.equal(answer.model, 'any-name');
      assert.equal(answer.choices[0].message.role, 'assistant');
      assert.equal(answer.choices[0].message.content, TEXT);
      assert.equal(answer.choices[0].finish_reason, 'stop');
      assert.equal(answer.usage.prompt_tokens + answer.usage.completion_tokens, answer.usage.total_tokens);
    });
openai('models', '`models.list` and `models.retrieve` give the policy of the run; another name throws `NotFoundError` (404).',
    async ({client}) => {
      const [model] = (await client.models.list()).data;
      assert.equal((await client.models.retrieve(model.id)).id, model.id);
      return refused(client.models.retrieve('gpt-4o'), OpenAI.NotFoundError, 404, {code: 'model_not_found'});
    });
openai('conversation', 'A second call with the answer in its messages continues the first one.',
    async ({client}) => {
      const messages = user('one');
      messages.push((await client.chat.completions.create({model: 'policy', messages})).choices[0].message);
      messages.push(...user('two'));
      const answer = await client.chat.completions.create({model: 'policy', messages});
      assert.equal(answer.choices[0].message.content, 'two');
      assert.equal(answer.millrace.turns[0].parent_turn, 0);
    });
openai('stream', 'A stream begins with the role, splits no character, and ends with the finish reason.',
    async ({client}) => {
      const all = await chunks(await chat(client, TEXT, {stream: true}));
      assert.equal(all[0].choices[0].delta.role, 'assistant');
      assert.equal(all.map(chunk => chunk.choices[0].delta.content ?? '').join(''), TEXT);
      assert.ok(all.every(chunk => !(chunk.choices[0].delta.content ?? '').includes('\uFFFD')));
      assert.deepEqual(all.map(chunk => chunk.choices[0].finish_reason).filter(reason => reason), ['stop']);
      assert.ok(all.every(chunk => chunk.object === 'chat.completion.chunk' && chunk.id === all[0].id));
      assert.ok(all.every(chunk => chunk.usage === undefined));
    });
openai('stream-usage', 'With `stream_options.include_usage` the last chunk has the usage and no choice; the usage of the others is null.',
    async ({client}) => {
      const all = await chunks(await chat(client, 'some words', {stream: true, stream_options: {include_usage: true}}));
      const last = all.pop();
      assert.deepEqual(last.choices, []);
      assert.equal(last.usage.prompt_tokens + last.usage.completion_tokens, last.usage.total_tokens);
      assert.ok(all.every(chunk => chunk.usage === null && chunk.choices.length === 1));
      return `${all.length} chunks`;
    });
openai('stream-helper', 'The client\'s `stream()` helper assembles the completion of a stream.',
    async ({client}) => {
      const answer = await streamed(client, TEXT, {stream_options: {include_usage: true}}).finalChatCompletion();
      assert.equal(answer.choices[0].message.content, TEXT);
      assert.ok(answer.usage.total_tokens > 0);
    });
openai('tool-calls', 'Parallel tool calls have ids of their own, JSON arguments, null content and finish reason `tool_calls`.',
    async ({client}) => {
      const [choice] = (await chat(client, CALLS, {tools})).choices;
      assert.equal(choice.finish_reason, 'tool_calls');
      assert.equal(choice.message.content, null);
      added(choice.message.tool_calls);
    });
openai('tool-calls-stream', 'The client\'s `stream()` helper assembles the same tool calls of a stream, none of them shown as text.',
    async ({client}) => {
      const stream = streamed(client, CALLS, {tools});
      let shown = '';
      stream.on('content', delta => shown += delta);
      const [choice] = (await stream.finalChatCompletion()).choices;
      assert.equal(shown, '');
      assert.equal(choice.finish_reason, 'tool_calls');
      added(choice.message.tool_calls);
    });
openai('tool-loop', 'The client\'s `runTools()` helper plays the calls, sends the results and gets the final answer.',
    async ({client}) => {
      const sums = [];
      const runner = client.chat.completions.runTools({model: 'policy', messages: user(CALLS), tools: [{type: 'function', function: {
        ...tools[0].function, parse: JSON.parse, function: ({a, b}) => { sums.push(a + b); return `the sum is ${a + b}`; }}}]});
      assert.equal(await runner.finalContent(), 'the sum is 7');
      assert.deepEqual(sums.sort(), [3, 7]);
    });
openai('tool-calls-malformed', 'A malformed tool call stays text with finish reason `stop`.',
    async ({client}) => {
      const [choice] = (await chat(client, '<tool_call>{"name": </tool_call>', {tools})).choices;
      assert.equal(choice.finish_reason, 'stop');
      assert.equal(choice.message.content, '<tool_call>{"name": </tool_call>');
      assert.equal(choice.message.tool_calls, undefined);
    });
openai('tool-choice', 'A forced `tool_choice` throws `BadRequestError` (400, `unsupported_parameter`).',
    ({client}) => refused(chat(client, 'x', {tools, tool_choice: 'required'}), OpenAI.BadRequestError, 400,
        {code: 'unsupported_parameter', param: 'tool_choice'}));
openai('text-parts', 'Content parts of type `text` are joined.',
    async ({client}) => {
      const parts = [{type: 'text', text: 'one, '}, {type: 'text', text: 'two'}];
      assert.equal((await chat(client, parts)).choices[0].message.content, 'one, two');
    });
openai('image-parts', 'Content parts with an image, audio or a file throw `BadRequestError` (400, `unsupported_parameter`).',
    async ({client}) => {
      const parts = [{type: 'image_url', image_url: {url: 'data:image/png;base64,AA=='}},
        {type: 'input_audio', input_audio: {data: 'AA==', format: 'wav'}}, {type: 'file', file: {file_id: 'f'}}];
      let last;
      for (const part of parts) {
        last = await refused(chat(client, [{type: 'text', text: 'what is it?'}, part]), OpenAI.BadRequestError, 400,
            {code: 'unsupported_parameter', type: 'invalid_request_error', param: 'messages[0].content'});
      }
      return last;
    });
openai('n', '`n` gives as many choices, numbered from 0, each sampled with a seed of its own.',
    async ({client}) => {
      const answer = await chat(client, 'seed {seed}', {n: 3});
      assert.deepEqual(answer.choices.map(choice => choice.index), [0, 1, 2]);
      assert.equal(new Set(answer.choices.map(choice => choice.message.content)).size, 3);
    });
openai('n-stream', '`n` streams as many choices, which the client\'s helper assembles.',
    async ({client}) => {
      const answer = await streamed(client, 'seed {seed}', {n: 3}).finalChatCompletion();
      assert.deepEqual(answer.choices.map(choice => choice.index).sort(), [0, 1, 2]);
      assert.ok(answer.choices.every(choice => /^seed \d+$/.test(choice.message.content)));
      assert.equal(new Set(answer.choices.map(choice => choice.message.content)).size, 3);
    });
openai('seed', 'The same `seed` gives the same choices.',
    async ({client}) => {
      const call = async () => (await chat(client, 'seed {seed}', {n: 2, seed: 7})).choices.map(choice => choice.message.content);
      const first = await call();
      assert.deepEqual(await call(), first);
    });
openai('logprobs', 'With `logprobs` each sampled token has a log-prob; joined tokens and joined bytes equal the text and its stop token. A character of several tokens is in the last of them.',
    async ({client}) => {
      const [choice] = (await chat(client, TEXT, {logprobs: true})).choices;
      const tokens = choice.logprobs.content;
      assert.ok(tokens.every(each => each.logprob <= 0 && each.top_logprobs.length === 0));
      assert.equal(tokens.at(-1).token, '<|im_end|>');
      assert.equal(tokens.slice(0, -1).map(each => each.token).join(''), TEXT);
      assert.equal(text(tokens.slice(0, -1).flatMap(each => each.bytes)), TEXT);
      return `${tokens.length} tokens`;
    });
openai('logprobs-stream', 'The log-probs of a stream are those of the plain answer.',
    async ({client}) => {
      const [plain] = (await chat(client, TEXT, {logprobs: true})).choices;
      const all = await chunks(await chat(client, TEXT, {logprobs: true, stream: true}));
      assert.deepEqual(all.flatMap(chunk => chunk.choices[0].logprobs?.content ?? []), plain.logprobs.content);
    });
openai('top-logprobs', '`top_logprobs` above 0 throws `BadRequestError` (400, `unsupported_parameter`).',
    ({client}) => refused(chat(client, 'x', {logprobs: true, top_logprobs: 2}), OpenAI.BadRequestError, 400,
        {code: 'unsupported_parameter', param: 'top_logprobs'}));
openai('stop', 'One `stop` string ends the answer before it, with finish reason `stop`.',
    async ({client}) => {
      const [choice] = (await chat(client, 'before END after', {stop: 'END'})).choices;
      assert.equal(choice.message.content, 'before ');
      assert.equal(choice.finish_reason, 'stop');
    });
openai('stop-several', 'Of several `stop` strings the first in the text ends the answer.',
    async ({client}) => {
      const [choice] = (await chat(client, 'a, b; c.', {stop: ['.', ';', 'never']})).choices;
      assert.equal(choice.message.content, 'a, b');
    });
openai('stop-across-tokens', 'A `stop` string may begin and end inside tokens.',
    async ({client}) => {
      const [choice] = (await chat(client, 'bananaSTOP! and more', {stop: 'STOP', logprobs: true})).choices;
      assert.equal(choice.message.content, 'banana');
      const tokens = choice.logprobs.content.map(each => each.token);
      assert.ok(tokens.includes('aS') && tokens.at(-1) === 'P!', JSON.stringify(tokens));
    });
openai('stop-special-token', 'The name of a special token may be a `stop` string.',
    async ({client}) => {
      const [choice] = (await chat(client, 'before<|endoftext|>after', {stop: '<|endoftext|>'})).choices;
      assert.equal(choice.message.content, 'before');
      assert.equal(choice.finish_reason, 'stop');
    });
openai('stop-stream', 'A stream shows no part of a `stop` string.',
    async ({client}) => {
      const all = await chunks(await chat(client, 'ST bananaSTOP! and more', {stop: ['STOP'], stream: true}));
      assert.equal(all.map(chunk => chunk.choices[0].delta.content ?? '').join(''), 'ST banana');
    });
openai('max-tokens', '`max_tokens` and `max_completion_tokens` cut the answer with finish reason `length`.',
    async ({client}) => {
      for (const limit of [{max_tokens: 4}, {max_completion_tokens: 4}]) {
        const answer = await chat(client, 'abcdefgh', limit);
        assert.equal(answer.choices[0].finish_reason, 'length');
        assert.equal(answer.choices[0].message.content, 'abcd');
        assert.equal(answer.usage.completion_tokens, 4);
      }
    });
openai('ignored', '`user`, `metadata`, `store`, `service_tier` and `parallel_tool_calls` change nothing.',
    async ({client}) => {
      const answer = await chat(client, 'x', {user: 'u', metadata: {a: 'b'}, store: false, service_tier: 'auto',
        tools, parallel_tool_calls: true});
      assert.equal(answer.choices[0].message.content, 'x');
    });
openai('unsupported', '`logit_bias`, penalties, JSON mode and unknown fields throw `BadRequestError` that names the field.',
    async ({client}) => {
      let last;
      for (const more of [{logit_bias: {5: 1}}, {frequency_penalty: 0.5}, {presence_penalty: 0.5},
        {response_format: {type: 'json_object'}}, {no_such_field: 1}]) {
        last = await refused(chat(client, 'x', more), OpenAI.BadRequestError, 400,
            {code: 'unsupported_parameter', param: Object.keys(more)[0]});
      }
      return last;
    });
openai('temperature-zero', 'Temperature 0 throws `BadRequestError` (400, `invalid_value`).',
    ({client}) => refused(chat(client, 'x', {temperature: 0}), OpenAI.BadRequestError, 400,
        {code: 'invalid_value', param: 'temperature'}));
openai('malformed-json', 'A body that is no JSON throws `BadRequestError` (400).',
    ({client}) => refused(client.post('/chat/completions', {body: '{"messages": [', headers: {'content-type': 'application/json'}}),
        OpenAI.BadRequestError, 400, {code: 'invalid_value', type: 'invalid_request_error'}));
openai('malformed-body', 'A field of the wrong type throws `BadRequestError` (400) that names the field.',
    async ({client}) => {
      let last;
      for (const more of [{messages: 'no list'}, {max_tokens: 'many'}, {n: 0}, {stop: ['']}, {stream: 'yes', stream_options: null}]) {
        last = await refused(client.post('/chat/completions', {body: {model: 'policy', messages: user('x'), ...more}}),
            OpenAI.BadRequestError, 400, {code: 'invalid_value', param: Object.keys(more)[0]});
      }
      return last;
    });
openai('wrong-token', 'A wrong API key throws `AuthenticationError` (401, `invalid_api_key`).',
    ({session}) => refused(chat(new OpenAI({baseURL: session.openai_base_url, apiKey: 'wrong', maxRetries: 0}), 'x'),
        OpenAI.AuthenticationError, 401, {code: 'invalid_api_key'}));
openai('unknown-session', 'A session that does not exist throws `NotFoundError` (404).',
    ({session}) => refused(chat(new OpenAI({baseURL: session.openai_base_url.replace(session.session, 's0-999-0'),
      apiKey: token, maxRetries: 0}), 'x'), OpenAI.NotFoundError, 404, {type: 'not_found_error'}));
openai('ended-session', 'A call of a completed session throws `UnprocessableEntityError` (422), which the client does not retry.',
    async ({client, session}) => {
      await chat(client, 'x');
      await complete(session);
      return refused(chat(client, 'x'), OpenAI.UnprocessableEntityError, 422, {code: 'conflict'});
    });
openai('too-long', 'A prompt without room for an answer throws `BadRequestError` (400, `context_length_exceeded`), plain and streamed.',
    async ({client}) => {
      await refused(chat(client, 'x'.repeat(3000), {stream: true}), OpenAI.BadRequestError, 400, {code: 'context_length_exceeded'});
      return refused(chat(client, 'x'.repeat(3000)), OpenAI.BadRequestError, 400, {code: 'context_length_exceeded', param: 'messages'});
    });
openai('retry', 'A retry by the client gets the answer of the first try.',
    async ({client}) => {
      const call = retries => client.chat.completions.create({model: 'policy', messages: user('seed {seed}')},
          {headers: {'X-Stainless-Retry-Count': retries}});
      const first = await call('0');
      assert.deepEqual((await call('1')).choices, first.choices);
    });
openai('completions', 'The legacy `completions.create` takes a text or token ids and gives text, `text_offset` and log-probs.',
    async ({client}) => {
      const answer = await client.completions.create({model: 'policy', prompt: TEXT, logprobs: 0});
      const {tokens, token_logprobs, text_offset} = answer.choices[0].logprobs;
      assert.equal(answer.object, 'text_completion');
      assert.equal(answer.choices[0].text, TEXT);
      assert.equal(tokens.slice(0, -1).join(''), TEXT);
      assert.equal(token_logprobs.length, tokens.length);
      assert.equal(text_offset.at(-1), TEXT.length);
      assert.equal((await client.completions.create({model: 'policy', prompt: [97, 98, 99]})).choices[0].finish_reason, 'stop');
    });

openai('responses', 'A response has an id, output text, status `completed` and a usage that adds up; its output as input continues it.',
    async ({client}) => {
      const input = user(TEXT);
      const first = await client.responses.create({model: 'any-name', input, instructions: 'Repeat.'});
      assert.equal(first.object, 'response');
      assert.match(first.id, /^resp_/);
      assert.deepEqual([first.model, first.status, first.output_text], ['any-name', 'completed', TEXT]);
      assert.equal(first.usage.input_tokens + first.usage.output_tokens, first.usage.total_tokens);
      input.push(...first.output, ...user('two'));
      const second = await client.responses.create({model: 'any-name', input, instructions: 'Repeat.'});
      assert.equal(second.output_text, 'two');
      assert.equal(second.millrace.turns[0].parent_turn, first.millrace.turns[0].turn);
    });
openai('responses-stream', 'The client\'s `responses.stream()` helper assembles the same response, log-probs included.',
    async ({client}) => {
      const call = {model: 'policy', input: TEXT, include: ['message.output_text.logprobs']};
      const stream = client.responses.stream(call);
      let shown = '';
      stream.on('response.output_text.delta', event => shown += event.delta);
      const assembled = await stream.finalResponse();
      const plain = await client.responses.create(call);
      assert.equal(shown, TEXT);
      assert.equal(assembled.output_text, TEXT);
      assert.deepEqual(assembled.output[0].content[0].logprobs, plain.output[0].content[0].logprobs);
      return `${plain.output[0].content[0].logprobs.length} tokens`;
    });
openai('responses-tools', 'Function calls are items of a response, plain and streamed; their outputs continue the conversation.',
    async ({client}) => {
      const call = {model: 'policy', tools: [{type: 'function', name: 'add', parameters, strict: true}]};
      const plain = await client.responses.create({...call, input: CALLS});
      const outputs = plain.output.map(item => [item.call_id, JSON.parse(item.arguments)])
          .map(([call_id, {a, b}]) => ({type: 'function_call_output', call_id, output: `the sum is ${a + b}`}));
      const last = await client.responses.create({...call, input: [...user(CALLS), ...plain.output, ...outputs]});
      assert.equal(last.output_text, 'the sum is 7');
      assert.equal(last.millrace.turns[0].parent_turn, plain.millrace.turns[0].turn);
      const assembled = await client.responses.stream({...call, input: CALLS}).finalResponse();
      for (const answer of [plain, assembled]) {
        assert.deepEqual(answer.output.map(item => [item.type, item.name, JSON.parse(item.arguments)]),
            [['function_call', 'add', {a: 1, b: 2}], ['function_call', 'add', {a: 3, b: 4}]]);
      }
    });
openai('responses-cut', '`max_output_tokens` cuts a response with status `incomplete`, plain and streamed.',
    async ({client}) => {
      const call = {model: 'policy', input: 'abcdefgh', max_output_tokens: 4};
      for (const answer of [await client.responses.create(call), await client.responses.stream(call).finalResponse()]) {
        assert.deepEqual([answer.status, answer.incomplete_details.reason, answer.output_text], ['incomplete', 'max_output_tokens', 'abcd']);
      }
    });
openai('responses-refused', 'A response that needs a stored one, OpenAI\'s own tools, JSON or reasoning throws `BadRequestError` that names the field.',
    async ({client}) => {
      let last;
      for (const more of [{previous_response_id: 'resp_1'}, {conversation: 'conv_1'}, {tools: [{type: 'web_search'}]},
        {text: {format: {type: 'json_object'}}}, {reasoning: {effort: 'low'}}, {background: true}, {no_such_field: 1}]) {
        last = await refused(client.responses.create({model: 'policy', input: 'x', ...more}), OpenAI.BadRequestError, 400,
            {code: 'unsupported_parameter', param: Object.keys(more)[0]});
      }
      return last;
    });

anthropic('plain', 'A message has text content, stop reason `end_turn` and a usage.',
    async ({claude}) => {
      const answer = await message(claude, TEXT);
      assert.equal(answer.type, 'message');
      assert.deepEqual(answer.content, [{type: 'text', text: TEXT}]);
      assert.equal(answer.stop_reason, 'end_turn');
      assert.ok(answer.usage.input_tokens > 0 && answer.usage.output_tokens > 0);
    });
anthropic('stream', 'The client\'s `stream()` helper assembles the message of a stream, usage included.',
    async ({claude}) => {
      const answer = await claude.messages.stream({model: 'policy', max_tokens: 256, messages: user(TEXT)}).finalMessage();
      assert.equal(answer.content[0].text, TEXT);
      assert.equal(answer.stop_reason, 'end_turn');
      assert.ok(answer.usage.output_tokens > 0);
    });
anthropic('tools', 'Parallel tool calls are `tool_use` blocks, plain and streamed; their results continue the conversation.',
    async ({claude}) => {
      const messages = user(CALLS);
      const plain = await claude.messages.create({model: 'policy', max_tokens: 256, messages, tools: custom});
      const streamed = await claude.messages.stream({model: 'policy', max_tokens: 256, messages, tools: custom}).finalMessage();
      for (const answer of [plain, streamed]) {
        assert.equal(answer.stop_reason, 'tool_use');
        assert.deepEqual(answer.content.map(block => [block.type, block.name, block.input]),
            [['tool_use', 'add', {a: 1, b: 2}], ['tool_use', 'add', {a: 3, b: 4}]]);
      }
      messages.push({role: 'assistant', content: plain.content}, {role: 'user', content: plain.content.map(block =>
          ({type: 'tool_result', tool_use_id: block.id, content: `the sum is ${block.input.a + block.input.b}`}))});
      const last = await claude.messages.create({model: 'policy', max_tokens: 256, messages, tools: custom});
      assert.equal(last.content[0].text, 'the sum is 7');
    });
anthropic('count-tokens', '`messages.countTokens` gives the input tokens that the call then has.',
    async ({claude}) => {
      const {input_tokens} = await claude.messages.countTokens({model: 'policy', messages: user(TEXT)});
      assert.equal(input_tokens, (await message(claude, TEXT)).usage.input_tokens);
      return `${input_tokens} tokens`;
    });
anthropic('stop', '`stop_sequences` and `max_tokens` end the answer with `stop_sequence` and `max_tokens`.',
    async ({claude}) => {
      const stopped = await message(claude, 'bananaSTOP! and more', {stop_sequences: ['STOP']});
      assert.deepEqual([stopped.content[0].text, stopped.stop_reason, stopped.stop_sequence], ['banana', 'stop_sequence', 'STOP']);
      const cut = await message(claude, 'abcdefgh', {max_tokens: 4});
      assert.deepEqual([cut.content[0].text, cut.stop_reason], ['abcd', 'max_tokens']);
    });
anthropic('images', 'Image blocks and `thinking` throw `BadRequestError` (400, `invalid_request_error`).',
    async ({claude}) => {
      await messageRefused(message(claude, 'x', {thinking: {type: 'enabled', budget_tokens: 1024}}), Anthropic.BadRequestError, 400,
          'invalid_request_error');
      return messageRefused(message(claude, [{type: 'image', source: {type: 'base64', media_type: 'image/png', data: 'AA=='}}]),
          Anthropic.BadRequestError, 400, 'invalid_request_error');
    });
anthropic('errors', 'A wrong key throws `AuthenticationError` (401), an unknown session `NotFoundError` (404), a too long prompt `BadRequestError` (400).',
    async ({claude, session}) => {
      await messageRefused(message(new Anthropic({baseURL: session.base_url, apiKey: 'wrong', maxRetries: 0}), 'x'),
          Anthropic.AuthenticationError, 401, 'authentication_error');
      await messageRefused(message(new Anthropic({baseURL: session.base_url.replace(session.session, 's0-999-0'), apiKey: token,
        maxRetries: 0}), 'x'), Anthropic.NotFoundError, 404, 'not_found_error');
      return messageRefused(message(claude, 'x'.repeat(3000)), Anthropic.BadRequestError, 400, 'invalid_request_error');
    });

async function post(path, body) {
  const answer = await fetch(gateway + path, {method: 'POST', body: JSON.stringify(body), headers: {Authorization: `Bearer ${token}`}});
  const json = await answer.json();
  assert.ok(answer.ok, JSON.stringify(json));
  return json;
}

const complete = session => post(`/v1/sessions/${session.session}/complete`, {reward: 1});

for (const {api, name, claim, run} of cases) {
  let ok = true;
  let detail = '';
  try {
    const session = await post('/v1/sessions', {agent: 'conformance'});
    detail = await run({
      session,
      client: new OpenAI({baseURL: session.openai_base_url, apiKey: token, maxRetries: 0}),
      claude: new Anthropic({baseURL: session.base_url, apiKey: token, maxRetries: 0}),
    }) ?? '';
    await complete(session);
  } catch (error) {
    ok = false;
    detail = String(error.stack ?? error);
  }
  console.log(JSON.stringify({case: `${api}/${name}`, claim, ok, detail}));
}
