// A gRPC client (grpc-js with grpc-js-xds) that finds its servers by xDS. Answers each line of standard input, as
// ccore.py does: `rpc TARGET` and `connect TARGET`.
const readline = require('readline');
const grpc = require('@grpc/grpc-js');
require('@grpc/grpc-js-xds').register();

const clients = new Map();
const bytes = (value) => value;

function client(target) {
    if (!clients.has(target)) {
        clients.set(target, new grpc.Client('xds:///' + target, grpc.credentials.createInsecure()));
    }
    return clients.get(target);
}

function answer(line, done) {
    const [what, target] = line.split(' ');
    if (what === 'connect') {
        client(target).getChannel().getConnectivityState(true);
        return done('ok ' + target);
    }
    const options = { deadline: Date.now() + 5000 };
    client(target).makeUnaryRequest('/interop.Backend/Name', bytes, bytes, Buffer.alloc(0), options, (error, value) => {
        done(error ? 'error ' + error.message.replace(/\s+/g, ' ') : 'ok ' + value.toString());
    });
}

let last = Promise.resolve();
const input = readline.createInterface({ input: process.stdin });
input.on('line', (line) => {
    last = last.then(() => new Promise((resolve) => answer(line, resolve))).then((text) => console.log(text));
});
input.on('close', () => process.exit(0));
