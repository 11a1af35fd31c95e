// The adapter of @enmeshed/node-control-plane (a server of the v2 API, SotW):
// xds-conformance server --transport v2 --variants sotw --control stdio -- node node-control-plane.js
const readline = require('readline');
const grpc = require('@grpc/grpc-js');
const { Controller, Node } = require('@enmeshed/node-control-plane');

const controller = new Controller();
const environment = controller.createEnvironment('kit');
let streams = 0;
controller.identifyNode = () => {
  // A Node takes one stream in its life, so that each stream has one of its own.
  const node = new Node(`stream-${(streams += 1)}`);
  node.controller = controller;
  node.environment = environment;
  return node;
};

const typeOf = (url) => controller.types[url.split('.').pop()];
const read = ({ type, any }) => typeOf(type).messageClass.decode(Buffer.from(any, 'base64'));

function apply(op) {
  const ops = op.op === 'batch' ? op.ops : [op];
  if (op.op === 'clear') return environment.set([]);
  for (const { op: what, type } of ops) {
    if (what !== 'put' && what !== 'delete') throw new Error(`${what} is not supported`);
    if (!typeOf(type)) throw new Error(`${type} is not known`);
  }
  const puts = ops.filter((each) => each.op === 'put').map(read);
  const deletions = ops.filter((each) => each.op === 'delete').map(({ type, name }) => [typeOf(type), name]);
  return environment.update(puts, deletions);
}

const server = controller.server.grpcServer;
server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  console.log(JSON.stringify({ ready: { address: `127.0.0.1:${port}`, features: ['sotw'] } }));
  const lines = readline.createInterface({ input: process.stdin });
  lines.on('line', (line) => {
    let answer = {};
    try {
      apply(JSON.parse(line));
    } catch (problem) {
      answer = { error: String(problem.message) };
    }
    console.log(JSON.stringify(answer));
  });
  lines.on('close', () => process.exit(0));
});
