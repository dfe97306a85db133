"use strict";
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const settings = workspace.getConfiguration("gatewright");
  const folder = workspace.workspaceFolders?.[0]?.uri.fsPath;
  client = new LanguageClient(
    "gatewright",
    "Gatewright",
    { command: settings.get("command"), args: ["lsp"], options: { cwd: folder } },
    {
      documentSelector: ["yaml", "json"].map(language => ({ scheme: "file", language })),
      initializationOptions: { policies: settings.get("policies"), namespace: settings.get("namespace") },
    },
  );
  return client.start();
};

exports.deactivate = () => client?.stop();
