-- Health of a QueueWorker. It needs no library but Lua's own words.
local health = {status = "Progressing", message = "The operator has not looked at this QueueWorker yet."}
local status = obj.status
-- A new object has observedGeneration -1 by default.
if status == nil or status.observedGeneration == nil or status.observedGeneration == -1 then
  return health
end
if status.observedGeneration ~= obj.metadata.generation then
  health.message = "The operator has not looked at the newest change yet."
  return health
end

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end
local function is(name, value)
  return conditions[name] ~= nil and conditions[name].status == value
end

-- What only a change can fix.
if is("Stalled", "True") then
  health.status = "Degraded"
  health.message = conditions["Stalled"].reason .. ": " .. conditions["Stalled"].message
  return health
end
-- A rollout is over when the last old worker has finished its job.
if is("Reconciling", "True") then
  health.message = conditions["Reconciling"].message
  return health
end
if is("Ready", "True") then
  health.status = "Healthy"
  health.message = conditions["Ready"].message
elseif conditions["Ready"] ~= nil then
  health.message = conditions["Ready"].message
end
return health
