import { createServer, request as send, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Breaks one request. Without any of the fields, the connection ends before the service gets the request. */
export interface Fault {
  status?: number;
  headers?: Record<string, string>;
  problem?: Record<string, unknown>;
  /** The service gets the request, and the client no answer. */
  losesAnswer?: boolean;
  /** The connection ends after so many events of the stream. */
  cutsAfter?: number;
}

export interface Proxy {
  url: string;
  seen: { method: string; headers: IncomingHttpHeaders }[];
  close(): Promise<void>;
}

/** Starts a proxy that applies one fault to each request whose path contains `path`, in order; further requests pass. */
export async function faulty(target: string, path: string, faults: Fault[]): Promise<Proxy> {
  const seen: Proxy['seen'] = [];
  const server = createServer((request, response) => {
    const matches = request.url!.includes(path);
    if (matches) seen.push({ method: request.method!, headers: request.headers });
    const fault = matches ? faults.shift() : undefined;
    if (fault?.status) return refuse(response, fault);
    if (fault && !fault.losesAnswer && !fault.cutsAfter) return void request.socket.destroy();
    pass(target, request, response, fault ?? {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function refuse(response: ServerResponse, { status, headers, problem }: Fault): void {
  response.writeHead(status!, { 'Content-Type': problem ? 'application/problem+json' : 'text/plain', ...headers });
  response.end(problem ? JSON.stringify(problem) : 'busy');
}

function pass(target: string, request: IncomingMessage, response: ServerResponse, fault: Fault): void {
  const url = new URL(request.url!, target);
  const headers = { ...request.headers, host: url.host };
  const forwarded = send(url, { method: request.method!, headers, agent: false }, async (answer) => {
    if (!fault.losesAnswer) response.writeHead(answer.statusCode!, answer.headers);
    let sent = '';
    for await (const piece of answer) {
      if (fault.losesAnswer) continue;
      const whole = sent + String(piece);
      const kept = whole.split('\n\n').slice(0, fault.cutsAfter).join('\n\n');
      const isCut = fault.cutsAfter !== undefined && kept.length < whole.length;
      response.write(isCut ? `${kept.slice(sent.length)}\n\n` : piece);
      if (isCut) break;
      sent = whole;
    }
    // The last piece has to leave before the connection breaks.
    if (fault.losesAnswer) request.socket.destroy();
    else if (fault.cutsAfter) response.write('', () => request.socket.destroy());
    else response.end();
  });
  forwarded.on('error', () => request.socket.destroy());
  response.on('close', () => forwarded.destroy());
  request.pipe(forwarded);
}
